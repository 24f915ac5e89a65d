import type { TestDependencies } from '../helpers/deliveries/attempts.ts'
import { expect } from 'chai'
import { createMetrics } from '../../src/observability/metrics.ts'
import type { RecordedAttempt } from '../../src/observability/metrics/deliveries.ts'
import { useAttempts } from '../helpers/deliveries/use-attempts.ts'
import { useTemporal } from '../helpers/temporal/time-skipping.ts'

describe('the delay of a first attempt, on a time-skipping server', () => {
  const suite = useAttempts()
  const temporal = useTemporal()

  /** What is counted for a delivery that is deferred so many times before its attempt is made. */
  async function recordedAfter(refusals: number): Promise<RecordedAttempt[]> {
    const { delivery } = await suite.publish()
    const recorded: RecordedAttempt[] = []
    let left = refusals
    const { endpoints } = suite.dependencies
    const dependencies: TestDependencies = {
      ...suite.dependencies,
      endpoints: {
        ...endpoints,
        acquireSoon: (...args) =>
          left-- > 0 ? Promise.resolve({ retryAfterMs: 500 }) : endpoints.acquireSoon(...args),
      },
      metrics: { ...createMetrics(), attemptRecorded: (attempt) => void recorded.push(attempt) },
    }
    await temporal.withWorkflows(dependencies, async (workflows) => {
      await workflows.start(delivery, { number: 1, dueAtMs: null })
      await temporal.resultOf(delivery.deliveryId)
    })
    return recorded
  }

  it('is measured from the commit of its delivery', async () => {
    const [attempt] = await recordedAfter(0)
    expect(attempt?.firstDelayMs).to.be.within(0, 30_000)
  })

  it('is not measured after a deferral: that delay is not ours', async () => {
    const attempts = await recordedAfter(2)
    expect(attempts.map(({ succeeded, firstDelayMs }) => ({ succeeded, firstDelayMs }))).to.deep.equal([
      { succeeded: true, firstDelayMs: null },
    ])
  })
})

import type { TestDependencies } from '../helpers/deliveries/attempts.ts'
import { expect } from 'chai'
import { useAttempts } from '../helpers/deliveries/use-attempts.ts'
import { useTemporal } from '../helpers/temporal/time-skipping.ts'

/** Temporal suggests to continue as new at so many events. A deferral adds eleven. */
const LONG_HISTORY = 4_096
const EVENTS_PER_DEFERRAL = 11

describe('the history of a delivery whose endpoint has no free slot for hours', () => {
  const suite = useAttempts()
  const temporal = useTemporal()

  it('stays bounded: the run is continued as new, and its attempt is made once a slot is free', async () => {
    const { delivery } = await suite.publish()
    const { endpoints } = suite.dependencies
    const deferrals = Math.ceil(LONG_HISTORY / EVENTS_PER_DEFERRAL) + 20
    let left = deferrals
    const dependencies: TestDependencies = {
      ...suite.dependencies,
      endpoints: {
        ...endpoints,
        acquireSoon: (...args) =>
          left-- > 0 ? Promise.resolve({ retryAfterMs: 300_000 }) : endpoints.acquireSoon(...args),
      },
    }
    await temporal.withWorkflows(dependencies, async (workflows) => {
      await workflows.start(delivery, { number: 1, dueAtMs: null })
      const handle = temporal.handleOf(delivery.deliveryId)
      const { runId } = await handle.describe()
      expect(await handle.result()).to.deep.equal({ state: 'completed', attempts: 1 })
      const { historyLength, runId: lastRunId } = await handle.describe()
      expect(lastRunId).not.to.equal(runId)
      const first = await temporal.environment.client.workflow.getHandle(handle.workflowId, runId).describe()
      expect(first.status.name).to.equal('CONTINUED_AS_NEW')
      expect(first.historyLength).to.be.within(LONG_HISTORY, LONG_HISTORY + 2 * EVENTS_PER_DEFERRAL)
      expect(historyLength).to.be.below(40 * EVENTS_PER_DEFERRAL)
    })
    expect(suite.receiver.postsOf(delivery.deliveryId)).to.have.length(1)
  })
})

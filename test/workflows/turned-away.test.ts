import type { TestWorkflowEnvironment } from '@temporalio/testing'
import { expect } from 'chai'
import type { ActivityDependencies } from '../../activities/index.ts'
import { createMetrics } from '../../src/metrics.ts'
import type { RecordedAttempt } from '../../src/metrics/attempts.ts'
import { createDeliveryWorkflows, deliveryWorkflowId } from '../../src/temporal/delivery-workflows.ts'
import { attemptDependencies } from '../helpers/deliveries/attempts.ts'
import { createMember, createWebhookRow, publishRow } from '../helpers/database/factories.ts'
import { createReceiver, type Receiver } from '../helpers/receivers/receiver.ts'
import { createTimeSkippingEngine, withWorker } from '../helpers/temporal/time-skipping.ts'
import { useDatabase } from '../helpers/database/use-database.ts'

describe('a first attempt, on an engine that skips time', function () {
  this.timeout(60_000)
  const database = useDatabase()
  let engine: TestWorkflowEnvironment
  let receiver: Receiver

  before(async () => {
    engine = await createTimeSkippingEngine()
    receiver = await createReceiver({ answer: () => 200 })
  })
  after(async () => {
    await receiver.close()
    await engine.teardown()
  })

  /** What is counted for a delivery that is deferred so many times before its attempt is made. */
  async function recordedAfter(refusals: number): Promise<RecordedAttempt[]> {
    const { dataSource } = database
    const { organisationId } = await createMember(dataSource)
    await createWebhookRow(dataSource, { organisationId, url: receiver.url })
    const [delivery] = await publishRow(dataSource, organisationId)
    const recorded: RecordedAttempt[] = []
    let left = refusals
    const common = attemptDependencies(dataSource)
    const dependencies: ActivityDependencies = {
      ...common,
      endpoints: {
        ...common.endpoints,
        acquireSoon: (...args) =>
          left-- > 0 ? Promise.resolve({ retryAfterMs: 500 }) : common.endpoints.acquireSoon(...args),
      },
      metrics: { ...createMetrics(), attemptRecorded: (attempt) => void recorded.push(attempt) },
    }
    await withWorker(engine, dependencies, async (taskQueue) => {
      const client = () => engine.client
      const workflows = createDeliveryWorkflows({ client, taskQueue, leadMs: 0, eager: false })
      await workflows.start(delivery!, { number: 1, dueAtMs: null }, { again: false })
      await engine.client.workflow.getHandle(deliveryWorkflowId(delivery!.deliveryId)).result()
    })
    await dependencies.httpClient.close()
    return recorded
  }

  it('is timed from the commit of its delivery', async () => {
    const [attempt] = await recordedAfter(0)
    expect(attempt?.firstDelayMs).to.be.within(0, 30_000)
  })

  it('is not timed when it was deferred before: that delay is not ours', async () => {
    const attempts = await recordedAfter(2)
    expect(attempts.map(({ succeeded, firstDelayMs }) => ({ succeeded, firstDelayMs }))).to.deep.equal([
      { succeeded: true, firstDelayMs: null },
    ])
  })
})

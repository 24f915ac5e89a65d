import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common'
import { expect } from 'chai'
import { attemptQueue } from '../../src/domain/task-queues.ts'
import type { DeliveryWorkflows } from '../../src/temporal/delivery-workflows.ts'
import { proveEndpoint } from '../helpers/deliveries/attempts.ts'
import { useAttempts } from '../helpers/deliveries/use-attempts.ts'
import type { History } from '../helpers/temporal/history.ts'
import { useTemporal } from '../helpers/temporal/use-temporal.ts'

const deliveryState = defineSearchAttributeKey('DeliveryState', SearchAttributeType.KEYWORD)

describe('workflows after an inline attempt, or with a slow first attempt', function () {
  this.timeout(60_000)
  const suite = useAttempts(2_000)
  const { answerWith } = suite
  const temporal = useTemporal()
  const { handleOf } = temporal
  const withWorkflows = (work: (workflows: DeliveryWorkflows, taskQueue: string) => Promise<void>) =>
    temporal.withWorkflows(suite.dependencies, work)
  /** The task queues of the attempts in a history, in order. */
  const queuesOf = ({ events }: History) =>
    (events ?? []).flatMap(({ activityTaskScheduledEventAttributes: scheduled }) =>
      scheduled === null || scheduled === undefined ? [] : [scheduled.taskQueue?.name],
    )

  it('show the recorded outcome and end at once: one workflow task, no activity, no POST', async () => {
    const { delivery } = await suite.publish()
    await withWorkflows(async (workflows) => {
      await workflows.startBackfill(delivery, 1)
      const handle = handleOf(delivery.deliveryId)
      expect(await handle.result()).to.deep.equal({ state: 'completed', attempts: 1 })
      const history = await handle.fetchHistory()
      const completed = (history.events ?? []).filter((event) => event.workflowTaskCompletedEventAttributes)
      expect(completed).to.have.length(1)
      expect(history.events).to.have.length(5)
      expect(queuesOf(history)).to.have.length(0)
      expect(await handle.query('deliveryState')).to.deep.equal({
        state: 'completed',
        attempts: 1,
        lastOutcome: 'confirmed with HTTP 200',
        nextAttemptAtMs: null,
      })
      const metadata = await handle.query<{ currentDetails?: string }>('__temporal_workflow_metadata')
      expect(metadata.currentDetails).to.include('completed: the endpoint confirmed')
      expect((await handle.describe()).typedSearchAttributes.get(deliveryState)).to.equal(undefined)
    })
    expect(suite.receiver.posts).to.have.length(0)
  })

  it('are started once, however often they are requested', async () => {
    const { delivery } = await suite.publish()
    await withWorkflows(async (workflows) => {
      await Promise.all([workflows.startBackfill(delivery, 1), workflows.startBackfill(delivery, 1)])
      const first = await handleOf(delivery.deliveryId).describe()
      await handleOf(delivery.deliveryId).result()
      await workflows.startBackfill(delivery, 1)
      expect((await handleOf(delivery.deliveryId).describe()).runId).to.equal(first.runId)
    })
  })

  it('replace no workflow that made the attempt itself', async () => {
    const { delivery } = await suite.publish()
    await withWorkflows(async (workflows) => {
      await workflows.start(delivery, { number: 1, dueAtMs: null }, { allowRestart: false })
      await handleOf(delivery.deliveryId).result()
      const { runId } = await handleOf(delivery.deliveryId).describe()
      await workflows.startBackfill(delivery, 1)
      expect((await handleOf(delivery.deliveryId).describe()).runId).to.equal(runId)
    })
    expect(suite.receiver.posts).to.have.length(1)
  })

  it('make retries on the retry queue, and first attempts of a healthy webhook on the main queue', async () => {
    answerWith((index) => (index < 2 ? 500 : 200))
    const { delivery } = await suite.publish()
    await withWorkflows(async (workflows, taskQueue) => {
      await workflows.start(delivery, { number: 1, dueAtMs: null }, { allowRestart: false })
      expect(await handleOf(delivery.deliveryId).result()).to.include({ state: 'completed', attempts: 3 })
      const retry = attemptQueue(taskQueue, 'retry')
      const queues = queuesOf(await handleOf(delivery.deliveryId).fetchHistory())
      expect(queues).to.deep.equal([taskQueue, retry, retry])
    })
  })

  it('make the first attempt of a slow webhook on the queue of slow attempts, and its retry on the retry queue', async () => {
    answerWith((index) => (index === 0 ? 500 : 200))
    const { delivery } = await suite.publish()
    await withWorkflows(async (workflows, taskQueue) => {
      await workflows.start(delivery, { number: 1, dueAtMs: null }, { allowRestart: false, kind: 'slow' })
      expect(await handleOf(delivery.deliveryId).result()).to.include({ state: 'completed', attempts: 2 })
      const queues = queuesOf(await handleOf(delivery.deliveryId).fetchHistory())
      expect(queues).to.deep.equal(['slow', 'retry'].map((kind) => `${taskQueue}-${kind}`))
    })
  })

  it('make the retry of a time-out on the queue of slow attempts', async () => {
    answerWith((index) => (index === 0 ? null : 200))
    const { delivery } = await suite.publish()
    await withWorkflows(async (workflows, taskQueue) => {
      await workflows.start(delivery, { number: 1, dueAtMs: null }, { allowRestart: false })
      expect(await handleOf(delivery.deliveryId).result()).to.include({ state: 'completed', attempts: 2 })
      const queues = queuesOf(await handleOf(delivery.deliveryId).fetchHistory())
      expect(queues).to.deep.equal([taskQueue, `${taskQueue}-slow`])
    })
  })

  it('make an attempt that a worker returns, since its endpoint is slow, on the queue of slow attempts', async () => {
    const { delivery } = await suite.publish()
    const { endpoints } = suite.dependencies
    proveEndpoint(endpoints, delivery.webhookId, 1)
    const slot = endpoints.acquire(delivery.webhookId, 'another')
    if (!('begin' in slot)) throw new Error('no slot is free')
    slot.begin()
    slot.release({ succeeded: true, durationMs: 5_000, isTimeout: false })
    await withWorkflows(async (workflows, taskQueue) => {
      await workflows.start(delivery, { number: 1, dueAtMs: null }, { allowRestart: false })
      expect(await handleOf(delivery.deliveryId).result()).to.include({ state: 'completed', attempts: 1 })
      const queues = queuesOf(await handleOf(delivery.deliveryId).fetchHistory())
      expect(queues).to.deep.equal([taskQueue, `${taskQueue}-slow`])
    })
    expect(suite.receiver.posts).to.have.length(1)
  })

  it('begin with the second attempt when the first was made inline, and not before it is due', async () => {
    const { delivery } = await suite.publish()
    await suite.database.dataSource.query(
      `UPDATE delivery SET state = 'waiting', attempts = 1, next_attempt_at = now() WHERE id = $1`,
      [delivery.deliveryId],
    )
    await withWorkflows(async (workflows, taskQueue) => {
      const dueAtMs = (await temporal.environment.currentTimeMs()) + 1_000
      await workflows.start(delivery, { number: 2, dueAtMs }, { allowRestart: false })
      expect(await handleOf(delivery.deliveryId).result()).to.include({ state: 'completed', attempts: 2 })
      expect(await temporal.environment.currentTimeMs()).to.be.at.least(dueAtMs)
      expect(queuesOf(await handleOf(delivery.deliveryId).fetchHistory())).to.deep.equal([
        attemptQueue(taskQueue, 'retry'),
      ])
    })
    expect(suite.receiver.posts).to.have.length(1)
  })
})

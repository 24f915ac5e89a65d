import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common'
import { expect } from 'chai'
import type { DeliverEventInput } from '../../src/domain/workflow-inputs.ts'
import { attemptQueue } from '../../src/domain/attempt-outcome.ts'
import { deliveryWorkflowId, type DeliveryWorkflows } from '../../src/temporal/workflows.ts'
import { proveEndpoint } from '../helpers/deliveries/attempts.ts'
import { useAttempts } from '../helpers/deliveries/use-attempts.ts'
import type { History } from '../helpers/temporal/history.ts'
import { useTemporal } from '../helpers/temporal/time-skipping.ts'

const deliveryState = defineSearchAttributeKey('DeliveryState', SearchAttributeType.KEYWORD)

describe('workflows after an inline attempt, or with a slow first attempt', () => {
  const suite = useAttempts(2_000)
  const { answerWith } = suite
  const temporal = useTemporal()
  const { handleOf } = temporal
  const withWorkflows = (work: (workflows: DeliveryWorkflows, taskQueue: string) => Promise<void>) =>
    temporal.withWorkflows(suite.dependencies, work)
  const detailsOf = async (deliveryId: string) =>
    (await handleOf(deliveryId).query<{ currentDetails?: string }>('__temporal_workflow_metadata'))
      .currentDetails
  /** The task queues of the attempts in a history, in order. */
  const queuesOf = ({ events }: History) =>
    (events ?? []).flatMap(({ activityTaskScheduledEventAttributes: scheduled }) =>
      scheduled === null || scheduled === undefined ? [] : [scheduled.taskQueue?.name],
    )

  it('show the recorded outcome and end at once: one workflow task, no activity, no POST', async () => {
    const { delivery } = await suite.publish()
    await withWorkflows(async (workflows) => {
      await workflows.startFollowing(delivery, { state: 'completed', attempts: 1 })
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
      expect(await detailsOf(delivery.deliveryId)).to.include('completed: the endpoint confirmed')
      expect((await handle.describe()).typedSearchAttributes.get(deliveryState)).to.equal(undefined)
    })
    expect(suite.receiver.posts).to.have.length(0)
  })

  for (const [state, failureCode, statusCode, answer] of [
    ['completed', null, 204, 'confirmed with HTTP 204'],
    ['failed', 'http_status', 503, 'HTTP 503'],
    ['stopped', 'timeout', null, 'timeout'],
  ] as const)
    it(`show who made the first attempt, when and with which answer, and end: ${state}`, async () => {
      const { delivery } = await suite.publish()
      const atMs = Date.parse('2026-11-24T12:00:00.500Z')
      await withWorkflows(async (workflows) => {
        await workflows.startFollowing(delivery, { state, attempts: 1, atMs, failureCode, statusCode })
        const handle = handleOf(delivery.deliveryId)
        expect(await handle.result()).to.deep.equal({ state, attempts: 1 })
        expect(queuesOf(await handle.fetchHistory())).to.have.length(0)
        expect(await handle.query('deliveryState')).to.include({ state, attempts: 1, lastOutcome: answer })
        const first = `made inline by a Posthorn process at 2026-11-24T12:00:00.500Z, before this workflow began`
        expect(await detailsOf(delivery.deliveryId)).to.include(`| First attempt | ${first}: ${answer} |`)
      })
    })

  it('read the row again where a signal comes before they end', async () => {
    const { delivery } = await suite.publish()
    const { organisationId, webhookId, deliveryId } = delivery
    await withWorkflows(async (_workflows, taskQueue) => {
      await suite.database.dataSource.query(
        `UPDATE delivery SET state = 'waiting', attempts = 1, next_attempt_at = now() WHERE id = $1`,
        [deliveryId],
      )
      const input: DeliverEventInput = {
        ...{ organisationId, webhookId, deliveryId, leadMs: 0, next: { number: 2, dueAtMs: null } },
        recorded: { state: 'stopped', attempts: 1, failureCode: 'http_status', statusCode: 500 },
      }
      const start = { workflowId: deliveryWorkflowId(deliveryId), taskQueue, args: [input] as const }
      const signalled = { signal: 'retry', signalArgs: [{ isRecorded: true }] }
      await temporal.environment.client.workflow.signalWithStart('deliverEvent', { ...start, ...signalled })
      expect(await temporal.resultOf(deliveryId)).to.deep.equal({ state: 'completed', attempts: 2 })
    })
    expect(suite.receiver.posts).to.have.length(1)
  })

  it('are started once, however often they are requested', async () => {
    const { delivery } = await suite.publish()
    await withWorkflows(async (workflows) => {
      await Promise.all([
        workflows.startFollowing(delivery, { state: 'completed', attempts: 1 }),
        workflows.startFollowing(delivery, { state: 'completed', attempts: 1 }),
      ])
      const first = await handleOf(delivery.deliveryId).describe()
      await handleOf(delivery.deliveryId).result()
      await workflows.startFollowing(delivery, { state: 'completed', attempts: 1 })
      expect((await handleOf(delivery.deliveryId).describe()).runId).to.equal(first.runId)
    })
  })

  it('replace no workflow that made the attempt itself', async () => {
    const { delivery } = await suite.publish()
    await withWorkflows(async (workflows) => {
      await workflows.start(delivery, { number: 1, dueAtMs: null })
      await handleOf(delivery.deliveryId).result()
      const { runId } = await handleOf(delivery.deliveryId).describe()
      await workflows.startFollowing(delivery, { state: 'completed', attempts: 1 })
      expect((await handleOf(delivery.deliveryId).describe()).runId).to.equal(runId)
    })
    expect(suite.receiver.posts).to.have.length(1)
  })

  it('make retries on the retry queue, and first attempts of a healthy webhook on the main queue', async () => {
    answerWith((index) => (index < 2 ? 500 : 200))
    const { delivery } = await suite.publish()
    await withWorkflows(async (workflows, taskQueue) => {
      await workflows.start(delivery, { number: 1, dueAtMs: null })
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
      await workflows.start(delivery, { number: 1, dueAtMs: null }, { queue: 'slow' })
      expect(await handleOf(delivery.deliveryId).result()).to.include({ state: 'completed', attempts: 2 })
      const queues = queuesOf(await handleOf(delivery.deliveryId).fetchHistory())
      expect(queues).to.deep.equal(['slow', 'retry'].map((kind) => `${taskQueue}-${kind}`))
    })
  })

  it('make the retry of a time-out on the queue of slow attempts', async () => {
    answerWith((index) => (index === 0 ? null : 200))
    const { delivery } = await suite.publish()
    await withWorkflows(async (workflows, taskQueue) => {
      await workflows.start(delivery, { number: 1, dueAtMs: null })
      expect(await handleOf(delivery.deliveryId).result()).to.include({ state: 'completed', attempts: 2 })
      const queues = queuesOf(await handleOf(delivery.deliveryId).fetchHistory())
      expect(queues).to.deep.equal([taskQueue, `${taskQueue}-slow`])
    })
  })

  it('make an attempt that a worker returns, since its endpoint is slow, on the queue of slow attempts', async () => {
    const { delivery } = await suite.publish()
    const { endpoints } = suite.dependencies
    proveEndpoint(endpoints, delivery.webhookId, 1)
    endpoints.noteFault(delivery.webhookId)
    await withWorkflows(async (workflows, taskQueue) => {
      await workflows.start(delivery, { number: 1, dueAtMs: null })
      expect(await handleOf(delivery.deliveryId).result()).to.include({ state: 'completed', attempts: 1 })
      const queues = queuesOf(await handleOf(delivery.deliveryId).fetchHistory())
      expect(queues).to.deep.equal([taskQueue, `${taskQueue}-slow`])
    })
    expect(suite.receiver.posts).to.have.length(1)
  })
})

import type { CommittedDelivery } from '../../src/deliveries/protocol/commit-events.ts'
import { requestRetry, switchOff } from '../helpers/deliveries/request-retry.ts'
import { setRow } from '../helpers/deliveries/set-row.ts'
import { insertRetryJob } from '../../src/db/queries/retry-jobs.ts'
import { newId } from '../../src/ids.ts'
import { deliveryWorkflowId, type DeliveryWorkflows, retryWorkflowId } from '../../src/temporal/workflows.ts'
import { attemptDependencies } from '../helpers/deliveries/attempts.ts'
import { writeBacklog } from '../helpers/deliveries/backlog.ts'
import { useHistoryStage } from '../helpers/temporal/use-history-stage.ts'

/** `npm run histories`: saves one history of each shape with today's workflows, for `test/workflows/replay.test.ts`. */
describe('histories of deliveries and retry jobs', () => {
  const stage = useHistoryStage()

  it('are saved', async () => {
    const { temporal, dataSource } = stage
    const deliver = async (
      name: string,
      act: (workflows: DeliveryWorkflows, delivery: CommittedDelivery) => Promise<void>,
      attemptsBefore = 0,
    ): Promise<void> => {
      const delivery = await stage.publish()
      const { deliveryId } = delivery
      await temporal.withWorkflows(attemptDependencies(dataSource), async (workflows) => {
        const dueAtMs = attemptsBefore === 0 ? null : await waitsUntil(deliveryId, attemptsBefore)
        await workflows.start(delivery, { number: attemptsBefore + 1, dueAtMs })
        await act(workflows, delivery)
        await temporal.resultOf(deliveryId)
      })
      await stage.save(name, deliveryWorkflowId(deliveryId))
    }
    const nothing = (): Promise<void> => Promise.resolve()
    /** Puts the delivery before a later attempt that is due in three seconds; returns that instant, as its row has it. */
    const waitsUntil = async (deliveryId: string, attempts: number): Promise<number> => {
      await setRow(dataSource, deliveryId, { state: 'waiting', attempts, dueInMs: 3_000 })
      const [row] = await dataSource.query<{ due: Date }[]>(
        'SELECT next_attempt_at AS due FROM delivery WHERE id = $1',
        [deliveryId],
      )
      return row!.due.getTime()
    }

    await deliver('first-try-success', nothing)
    stage.answer = () => 503
    await deliver('exhausted', nothing)
    stage.answer = (index) => (index < 3 ? 500 : 200)
    await deliver('completed-after-failures', nothing)
    stage.answer = (index) => (index < 5 ? 500 : 200)
    await deliver('retried-by-user', async (workflows, delivery) => {
      const { organisationId, webhookId, deliveryId } = delivery
      await temporal.environment.sleep('16 seconds')
      const requested = await requestRetry(dataSource, organisationId, webhookId, deliveryId)
      await workflows.wake(delivery, requested!.attempts)
    })
    await deliver('retried-by-signal', async (_workflows, { deliveryId }) => {
      await temporal.environment.sleep('16 seconds')
      await temporal.handleOf(deliveryId).signal('retry')
    })
    stage.answer = (index) => (index < 2 ? 500 : 200)
    await deliver('started-at-attempt-2', nothing, 1)
    stage.answer = () => 500
    await deliver('stopped', async (workflows, { organisationId, webhookId, deliveryId }) => {
      await temporal.environment.sleep('16 seconds')
      await dataSource.transaction((manager) => switchOff(manager, organisationId, webhookId))
      await workflows.stop(deliveryId)
    })

    const { organisationId, memberId, webhookId } = await stage.createWebhook()
    const mode = 'failed' as const
    const job = { id: newId(), organisationId, webhookId: null, mode, requestedBy: memberId }
    const ids = await writeBacklog(dataSource, { organisationId, webhookId, state: 'failed', count: 3 })
    await dataSource.transaction((manager) => insertRetryJob(manager, job))
    // Their workflows are never started, so a completed row makes each count as retried.
    await setRow(dataSource, ids, { state: 'completed', attempts: 10 })
    const workflowId = retryWorkflowId(job.id)
    await temporal.withWorkflows(attemptDependencies(dataSource), (_workflows, taskQueue) =>
      temporal.environment.client.workflow.execute('retryDeliveries', {
        workflowId,
        taskQueue,
        args: [{ organisationId, jobId: job.id }],
      }),
    )
    await stage.save('retry-job', workflowId)
  })
})

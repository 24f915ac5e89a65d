import { askForRetry, stopDeliveries } from '../../src/db/queries/interventions.ts'
import { insertRetryJob } from '../../src/db/queries/retry-jobs.ts'
import { newId } from '../../src/ids.ts'
import { createDeliveryWorkflows, deliveryWorkflowId } from '../../src/temporal/delivery-workflows.ts'
import { attemptDependencies } from '../helpers/deliveries/attempts.ts'
import { writeBacklog } from '../helpers/deliveries/backlog.ts'
import { createTestDatabase } from '../helpers/database/database.ts'
import { createMember, createWebhookRow, publishRow } from '../helpers/database/factories.ts'
import { createReceiver, type Answer } from '../helpers/receivers/receiver.ts'
import { saveHistory } from '../helpers/temporal/save-history.ts'
import { createTimeSkippingEngine, withWorker } from '../helpers/temporal/time-skipping.ts'

/** `npm run histories`: makes one history of each shape with today's workflows, for `test/workflows/replay.test.ts`. */
describe('histories', function () {
  this.timeout(60_000)

  it('are saved', async () => {
    const database = await createTestDatabase()
    const engine = await createTimeSkippingEngine()
    const { dataSource } = database
    let answer: Answer = () => 200
    const receiver = await createReceiver({ answer: (...args) => answer(...args) })
    const save = (name: string, workflowId: string): Promise<void> => saveHistory(engine, name, workflowId)
    const deliver = async (
      name: string,
      act: (tools: {
        workflows: ReturnType<typeof createDeliveryWorkflows>
        ids: { organisationId: string; webhookId: string; deliveryId: string }
      }) => Promise<void>,
      attemptsBefore = 0,
    ): Promise<void> => {
      const { organisationId } = await createMember(dataSource)
      await createWebhookRow(dataSource, { organisationId, url: receiver.url })
      const [delivery] = await publishRow(dataSource, organisationId)
      await withWorker(engine, attemptDependencies(dataSource), async (taskQueue) => {
        const workflows = createDeliveryWorkflows({
          client: () => engine.client,
          taskQueue,
          leadMs: 500,
          eager: false,
        })
        await dataSource.query(
          `UPDATE delivery SET attempts = $2, state = CASE $2::int WHEN 0 THEN state ELSE 'waiting' END WHERE id = $1`,
          [delivery!.deliveryId, attemptsBefore],
        )
        const dueAtMs = attemptsBefore === 0 ? null : Date.now() + 3_000
        await workflows.start(delivery!, { number: attemptsBefore + 1, dueAtMs }, { again: false })
        await act({ workflows, ids: delivery! })
        await engine.client.workflow.getHandle(deliveryWorkflowId(delivery!.deliveryId)).result()
      })
      await save(name, deliveryWorkflowId(delivery!.deliveryId))
    }
    const nothing = (): Promise<void> => Promise.resolve()

    await deliver('first-try-success', nothing)
    answer = () => 503
    await deliver('exhausted', nothing)
    answer = (index) => (index < 3 ? 500 : 200)
    await deliver('completed-after-failures', nothing)
    answer = (index) => (index < 5 ? 500 : 200)
    await deliver('retried-by-a-person', async ({ workflows, ids }) => {
      await engine.sleep('16 seconds')
      const asked = await askForRetry(dataSource, ids.organisationId, ids.webhookId, ids.deliveryId)
      await workflows.wake({ ...ids, eventKey: 'customer:created', url: receiver.url }, asked!.attempts)
    })
    await deliver('retried-by-a-bare-signal', async ({ ids }) => {
      await engine.sleep('16 seconds')
      await engine.client.workflow.getHandle(deliveryWorkflowId(ids.deliveryId)).signal('retry')
    })
    answer = (index) => (index < 2 ? 500 : 200)
    await deliver('begun-with-attempt-2', nothing, 1)
    answer = () => 500
    await deliver('stopped', async ({ workflows, ids }) => {
      await engine.sleep('16 seconds')
      await stopDeliveries(dataSource, ids.organisationId, ids.webhookId, 'webhook_disabled')
      await workflows.stop(ids.deliveryId)
    })

    const { organisationId, memberId } = await createMember(dataSource)
    const webhook = await createWebhookRow(dataSource, { organisationId, url: receiver.url })
    const job = {
      id: newId(),
      organisationId,
      webhookId: null,
      mode: 'failed' as const,
      requestedBy: memberId,
    }
    await writeBacklog(dataSource, { organisationId, webhookId: webhook.id, state: 'failed', count: 3 })
    await dataSource.transaction((manager) => insertRetryJob(manager, job))
    // The deliveries need no attempt here: their workflows are never started, so they count as settled once asked for.
    await dataSource.query(`UPDATE delivery SET state = 'completed' WHERE webhook_id = $1`, [webhook.id])
    await withWorker(engine, attemptDependencies(dataSource), (taskQueue) =>
      engine.client.workflow.execute('retryDeliveries', {
        workflowId: `retry-deliveries/${job.id}`,
        taskQueue,
        args: [{ organisationId, jobId: job.id }],
      }),
    )
    await save('retry-job', `retry-deliveries/${job.id}`)
    await receiver.close()
    await engine.teardown()
    await database.drop()
  })
})

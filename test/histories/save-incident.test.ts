import { expect } from 'chai'
import type { ActivityDependencies } from '../../activities/index.ts'
import { askForRetry } from '../../src/db/queries/interventions.ts'
import { createDeliveryWorkflows, deliveryWorkflowId } from '../../src/temporal/delivery-workflows.ts'
import { createIncidentWorkflows, incidentWorkflowId } from '../../src/temporal/incident-workflows.ts'
import { attemptDependencies, unbounded } from '../helpers/deliveries/attempts.ts'
import { createTestDatabase } from '../helpers/database/database.ts'
import { eventually } from '../helpers/eventually.ts'
import { createMember, createWebhookRow, publishRow } from '../helpers/database/factories.ts'
import { createReceiver } from '../helpers/receivers/receiver.ts'
import { saveHistory } from '../helpers/temporal/save-history.ts'
import { createTimeSkippingEngine, withWorker } from '../helpers/temporal/time-skipping.ts'

/** The other half of `npm run histories`: an incident with both notifications, one refused at first, and its end. */
describe('the history of an incident', function () {
  this.timeout(60_000)

  it('is saved', async () => {
    const database = await createTestDatabase()
    const engine = await createTimeSkippingEngine()
    const { dataSource } = database
    let failing = true
    const receiver = await createReceiver({ answer: () => (failing ? 503 : 200) })
    const { organisationId } = await createMember(dataSource)
    const webhook = await createWebhookRow(dataSource, { organisationId, url: receiver.url })
    const [delivery] = await publishRow(dataSource, organisationId)
    const { deliveryId } = delivery!
    let incidentId = ''
    let refusals = 2
    const client = () => engine.client
    const dependencies = (taskQueue: () => string): ActivityDependencies => ({
      ...attemptDependencies(dataSource),
      incidentWorkflows: {
        tell(label) {
          incidentId = label.incidentId
          const options = { client, taskQueue: taskQueue(), notifyAfterMs: 300_000 }
          return createIncidentWorkflows(options).tell(label)
        },
      },
      channels: {
        push: null,
        email: {
          admission: unbounded,
          send: () =>
            Promise.resolve(refusals-- > 0 ? { state: 'refused', error: 'not now' } : { state: 'sent' }),
        },
      },
    })
    let queue = ''
    await withWorker(
      engine,
      dependencies(() => queue),
      async (taskQueue) => {
        queue = taskQueue
        const workflows = createDeliveryWorkflows({ client, taskQueue, leadMs: 0, eager: false })
        const handle = engine.client.workflow.getHandle(deliveryWorkflowId(deliveryId))
        await workflows.start(delivery!, { number: 1, dueAtMs: null }, { again: false })
        await handle.result()
        failing = false
        const asked = await askForRetry(dataSource, organisationId, webhook.id, deliveryId)
        await workflows.wake({ organisationId, webhookId: webhook.id, ...asked! }, asked!.attempts)
        await handle.result()
        await eventually(async () => {
          const incident = engine.client.workflow.getHandle(incidentWorkflowId(webhook.id, incidentId))
          expect((await incident.describe()).status.name).to.equal('COMPLETED')
        })
      },
    )
    await saveHistory(engine, 'incident', incidentWorkflowId(webhook.id, incidentId))
    await receiver.close()
    await engine.teardown()
    await database.drop()
  })
})

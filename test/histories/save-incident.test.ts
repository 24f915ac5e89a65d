import { expect } from 'chai'
import { requestRetry } from '../helpers/deliveries/request-retry.ts'
import { createIncidentWorkflows, incidentWorkflowId } from '../../src/temporal/workflows.ts'
import { attemptDependencies, unbounded, type TestDependencies } from '../helpers/deliveries/attempts.ts'
import { eventually } from '../helpers/eventually.ts'
import { useHistoryStage } from '../helpers/temporal/use-history-stage.ts'

/** The other half of `npm run histories`: an incident with both notifications, one refused at first, and its end. */
describe('the history of an incident', () => {
  const stage = useHistoryStage()

  it('is saved', async () => {
    const { temporal, dataSource } = stage
    const client = () => temporal.environment.client
    stage.answer = () => 503
    const delivery = await stage.publish()
    const { organisationId, webhookId, deliveryId } = delivery
    let incidentId = ''
    let refusals = 2
    let incidentQueue = ''
    const dependencies: TestDependencies = {
      ...attemptDependencies(dataSource),
      incidentWorkflows: {
        signal(label) {
          incidentId = label.incidentId
          const options = { client, taskQueue: incidentQueue, notifyAfterMs: 300_000 }
          return createIncidentWorkflows(options).signal(label)
        },
      },
      channels: {
        push: null,
        email: {
          limiter: unbounded,
          send: () =>
            Promise.resolve(refusals-- > 0 ? { state: 'refused', error: 'not now' } : { state: 'sent' }),
        },
      },
    }
    await temporal.withWorkflows(dependencies, async (workflows, taskQueue) => {
      incidentQueue = taskQueue
      await workflows.start(delivery, { number: 1, dueAtMs: null })
      await temporal.resultOf(deliveryId)
      stage.answer = () => 200
      const requested = await requestRetry(dataSource, organisationId, webhookId, deliveryId)
      await workflows.wake(delivery, requested!.attempts)
      await temporal.resultOf(deliveryId)
      await eventually(async () => {
        const incident = client().workflow.getHandle(incidentWorkflowId(webhookId, incidentId))
        expect((await incident.describe()).status.name).to.equal('COMPLETED')
      })
    })
    await stage.save('incident', incidentWorkflowId(webhookId, incidentId))
  })
})

import { proxyActivities, setCurrentDetails } from '@temporalio/workflow'
import type { Activities } from '../activities/index.ts'
import type { RetryDeliveriesInput } from './messages.ts'

/** Only for faults of ours, without an end. The job keeps its place in the database and goes on there. */
const { listJobWebhooks, retryWebhookDeliveries, finishJob } = proxyActivities<Activities>({
  startToCloseTimeout: '1 day',
  heartbeatTimeout: '10 seconds',
  retry: { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '1 minute' },
})

/**
 * One retry-deliveries call (spec 4.2). Webhooks go side by side, so that one that hangs delays no other; within a
 * webhook the activity bounds what is under way.
 */
export async function retryDeliveries(input: RetryDeliveriesInput): Promise<{ webhooks: number }> {
  const webhookIds = await listJobWebhooks(input)
  setCurrentDetails(
    `Retrying the deliveries of ${webhookIds.length} webhook(s). Progress: GET …/retry-deliveries/${input.jobId}`,
  )
  await Promise.all(webhookIds.map((webhookId) => retryWebhookDeliveries({ ...input, webhookId })))
  await finishJob(input)
  setCurrentDetails('Done: every delivery that it covered has been attempted, or no longer needed it.')
  return { webhooks: webhookIds.length }
}

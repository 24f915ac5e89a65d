import type { Logger } from '../../observability/logger.ts'
import type { DeliveryWorkflows } from '../../temporal/delivery-workflows.ts'
import type { RequestedRetry } from '../protocol/change-deliveries.ts'
import { callForEach } from '../recovery/bounded-calls.ts'

const MAX_CONCURRENT_WAKES = 10

/**
 * Wakes the workflows of deliveries with a requested retry. Never rejects: the sweeper wakes those that are left a few
 * seconds later.
 */
export async function wakeWorkflows(
  { workflows, logger }: { workflows: Pick<DeliveryWorkflows, 'wake'>; logger: Logger },
  webhook: { organisationId: string; webhookId: string },
  requested: readonly RequestedRetry[],
): Promise<void> {
  const retries = requested.filter(({ state }) => state === 'waiting')
  await callForEach(retries, (delivery) => workflows.wake({ ...webhook, ...delivery }, delivery.attempts), {
    concurrency: MAX_CONCURRENT_WAKES,
    onFailed: ({ deliveryId }, error) =>
      logger.warn({ event: 'retry.wake_failed', deliveryId, err: error }, 'retry.wake_failed'),
  })
}

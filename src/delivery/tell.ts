import type { AskedDelivery } from '../db/queries/interventions.ts'
import type { Logger } from '../logger.ts'
import type { DeliveryWorkflows } from '../temporal/delivery-workflows.ts'

/**
 * Wakes the workflow of a delivery whose row says that a retry is wanted. Failing is no loss: the sweep finds the row
 * a few seconds later and tells it again.
 */
export async function tellOfRetry(
  dependencies: { workflows: Pick<DeliveryWorkflows, 'wake'>; logger: Logger },
  webhook: { organisationId: string; webhookId: string },
  asked: AskedDelivery,
): Promise<void> {
  try {
    await dependencies.workflows.wake({ ...webhook, ...asked }, asked.attempts)
  } catch (error) {
    const { deliveryId } = asked
    dependencies.logger.warn({ event: 'retry.not_told', deliveryId, err: error }, 'retry.not_told')
  }
}

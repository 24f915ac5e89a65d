import pLimit from 'p-limit'
import type { AskedDelivery } from '../../db/queries/interventions.ts'
import type { Logger } from '../../logger.ts'
import type { DeliveryWorkflows } from '../../temporal/delivery-workflows.ts'
import { isEngineAway } from '../../temporal/engine-away.ts'

/** Workflows woken at once. */
const CONCURRENT_WAKES = 10

/**
 * Wakes the workflows of deliveries whose rows say that a retry is wanted. Failing is no loss, and never throws: the
 * sweep finds such a row a few seconds later and wakes them again. While Temporal is away the rest is left to it too.
 */
export async function wakeWorkflows(
  dependencies: { workflows: Pick<DeliveryWorkflows, 'wake'>; logger: Logger },
  webhook: { organisationId: string; webhookId: string },
  asked: readonly AskedDelivery[],
): Promise<void> {
  const limit = pLimit(CONCURRENT_WAKES)
  let away = false
  await limit.map(asked, async (delivery) => {
    if (away || delivery.isFirst) return
    try {
      await dependencies.workflows.wake({ ...webhook, ...delivery }, delivery.attempts)
    } catch (error) {
      away ||= isEngineAway(error)
      const { deliveryId } = delivery
      dependencies.logger.warn({ event: 'retry.not_told', deliveryId, err: error }, 'retry.not_told')
    }
  })
}

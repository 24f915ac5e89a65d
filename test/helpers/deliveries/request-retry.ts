import type { Db } from '../../../src/db/connection/db.ts'
import { DELIVERY_STATES } from '../../../src/domain/delivery-state.ts'
import { requestRetries, type RequestedRetry } from '../../../src/deliveries/protocol/change-deliveries.ts'

/** Requests a retry of one delivery, in any state; null where that is not possible. */
export async function requestRetry(
  db: Db,
  organisationId: string,
  webhookId: string,
  deliveryId: string,
): Promise<RequestedRetry | null> {
  const [requested] = await requestRetries(db, {
    organisationId,
    webhookId,
    ids: [deliveryId],
    states: DELIVERY_STATES,
  })
  return requested ?? null
}

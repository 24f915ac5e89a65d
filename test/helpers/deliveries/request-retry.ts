import type { Db } from '../../../src/db/connection/db.ts'
import { DELIVERY_STATES } from '../../../src/domain/delivery-state.ts'
import {
  requestRetries,
  type RequestedRetry,
  stopUnwanted,
} from '../../../src/deliveries/protocol/change-deliveries.ts'
import type { EntityManager } from 'typeorm'

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

/** Disables a webhook and stops what waits, as the API does; the transaction takes the lock of the webhook before. */
export async function switchOff(
  manager: EntityManager,
  organisationId: string,
  webhookId: string,
): Promise<number> {
  await manager.query('UPDATE webhook SET enabled = false WHERE id = $1', [webhookId])
  return (await stopUnwanted(manager, { organisationId, webhookId })).stopped
}

import type { EntityManager } from 'typeorm'
import { stopUnwanted } from '../../../src/deliveries/protocol/change-deliveries.ts'

/** Disables a webhook and stops what waits, as the API does; the transaction takes the lock of the webhook before. */
export async function switchOff(
  manager: EntityManager,
  organisationId: string,
  webhookId: string,
): Promise<number> {
  await manager.query('UPDATE webhook SET enabled = false WHERE id = $1', [webhookId])
  return stopUnwanted(manager, { organisationId, webhookId })
}

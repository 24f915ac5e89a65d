import type { EntityManager } from 'typeorm'
import type { Actor } from '../../domain/actor.ts'
import { recordAudit } from '../../db/queries/audit.ts'
import { listDiscardable } from '../../db/queries/delivery-selection.ts'
import { closeResolvedIncident } from '../../db/queries/incidents.ts'
import { allowLongerStatements } from '../../db/connection/database-client.ts'
import { type DeliverySelection, selectionForAudit } from '../../domain/delivery-filter.ts'
import { conflict } from '../../problem-error.ts'
import {
  type Changed,
  signalIncident,
  type SignalDependencies,
} from '../../incidents/evaluate-notifications.ts'
import { transactOnOwn, transactOnWebhook } from '../../webhooks/webhook-locks.ts'
import type { StopDependencies } from '../attempt/claim-attempt.ts'
import { discard } from '../protocol/change-deliveries.ts'
import { requireDelivery } from './retry-delivery.ts'

type Dependencies = StopDependencies & SignalDependencies

/** Stops one waiting or permanently failed delivery for good. Throws 409 in any other state. */
export async function discardDelivery(
  dependencies: Dependencies,
  actor: Actor,
  webhookId: string,
  deliveryId: string,
): Promise<void> {
  const { dataSource, metrics } = dependencies
  const { organisationId } = actor
  await requireDelivery(dataSource, organisationId, webhookId, deliveryId)
  const { result: discarded, toSignal } = await transactOnWebhook(dependencies, webhookId, (manager) =>
    closeAfterDiscard(manager, { organisationId, webhookId }, async () => {
      const { length } = await discard(manager, { organisationId, webhookId, ids: [deliveryId] })
      if (length > 0)
        await recordAudit(manager, actor, { action: 'delivery.discarded', webhookId, deliveryId })
      return length
    }),
  )
  void signalIncident(dependencies, toSignal)
  metrics.deliveriesStopped(discarded)
  if (discarded === 0)
    throw conflict('not_discardable', 'Only a waiting or permanently failed delivery can be discarded.')
}

/** Which deliveries of a webhook are discarded. */
type Discarded = { states: readonly ('waiting' | 'failed')[]; selection: DeliverySelection }

/** Stops the deliveries of a webhook that are selected, and in one of the states, for good; returns how many. */
export async function discardDeliveries(
  dependencies: Dependencies,
  actor: Actor,
  webhookId: string,
  which: Discarded,
): Promise<number> {
  const of = { organisationId: actor.organisationId, webhookId }
  const { result, toSignal } = await transactOnOwn(dependencies, actor, webhookId, (manager) =>
    closeAfterDiscard(manager, of, async () => {
      const count = await discardAll(manager, of, which)
      const details = { count, ...selectionForAudit(which.selection) }
      await recordAudit(manager, actor, { action: 'deliveries.discarded', webhookId, details })
      return count
    }),
  )
  void signalIncident(dependencies, toSignal)
  dependencies.metrics.deliveriesStopped(result)
  return result
}

/**
 * Discards deliveries of the webhook by `discard`, which returns how many, and closes its incident if none is left
 * unresolved; the incident stays as it is where nothing was discarded. The caller holds the lock of the webhook.
 */
export async function closeAfterDiscard(
  manager: EntityManager,
  of: { organisationId: string; webhookId: string },
  discard: () => Promise<number>,
): Promise<Changed<number>> {
  const result = await discard()
  return { result, toSignal: result > 0 ? await closeResolvedIncident(manager, of) : null }
}

/** There may be hundreds of thousands of them. */
async function discardAll(
  manager: EntityManager,
  of: { organisationId: string; webhookId: string },
  which: Discarded,
): Promise<number> {
  await allowLongerStatements(manager)
  let count = 0
  for (let after: string | null = null; ;) {
    const ids: string[] = await listDiscardable(manager, of, { ...which, after })
    const last = ids.at(-1)
    if (last === undefined) return count
    count += (await discard(manager, { ...of, ids })).length
    after = last
  }
}

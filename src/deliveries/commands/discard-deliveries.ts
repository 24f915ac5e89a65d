import type { EntityManager } from 'typeorm'
import type { Actor } from '../../accounts/actor.ts'
import { recordAudit } from '../../db/queries/audit.ts'
import { discardDelivery as discardRow, discardFailed, discardSelected } from '../../db/queries/stops.ts'
import type { DeliverySelection } from '../../domain/delivery-filter.ts'
import { conflict } from '../../errors.ts'
import { closeIfResolved } from '../../incidents/change-incident.ts'
import { transactOnOwn } from '../../incidents/transact-on-own.ts'
import { signalIncident, type SignalDependencies } from '../../incidents/signal-incident.ts'
import { transactOnWebhook, type CommandDependencies } from '../../incidents/webhook-locks.ts'
import type { Metrics } from '../../observability/metrics.ts'
import { requireDelivery } from './preconditions.ts'
import { selectionForAudit } from './selection-for-audit.ts'

type Dependencies = CommandDependencies &
  SignalDependencies & {
    metrics: Pick<Metrics, 'deliveriesStopped'>
  }

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
    closeIfResolved(manager, webhookId, async () => {
      const found = await discardRow(manager, organisationId, webhookId, deliveryId)
      if (found !== null)
        await recordAudit(manager, actor, { action: 'delivery.discarded', webhookId, deliveryId })
      return found
    }),
  )
  void signalIncident(dependencies, toSignal)
  metrics.deliveriesStopped(discarded === null ? 0 : 1)
  if (discarded === null)
    throw conflict('not_discardable', 'Only a waiting or permanently failed delivery can be discarded.')
}

/** Stops all permanently failed deliveries of a webhook for good; returns how many. */
export function discardFailedDeliveries(
  dependencies: Dependencies,
  actor: Actor,
  webhookId: string,
): Promise<number> {
  return discardMany(dependencies, actor, webhookId, {}, (manager) =>
    discardFailed(manager, actor.organisationId, webhookId),
  )
}

/** Stops the waiting and permanently failed deliveries that are selected for good; returns how many. */
export function discardSelectedDeliveries(
  dependencies: Dependencies,
  actor: Actor,
  webhookId: string,
  selection: DeliverySelection,
): Promise<number> {
  return discardMany(dependencies, actor, webhookId, selectionForAudit(selection), (manager) =>
    discardSelected(manager, actor.organisationId, webhookId, selection),
  )
}

async function discardMany(
  dependencies: Dependencies,
  actor: Actor,
  webhookId: string,
  selected: Record<string, unknown>,
  discard: (manager: EntityManager) => Promise<number>,
): Promise<number> {
  const { result, toSignal } = await transactOnOwn(dependencies, actor, webhookId, (manager) =>
    closeIfResolved(manager, webhookId, async () => {
      const count = await discard(manager)
      const details = { count, ...selected }
      await recordAudit(manager, actor, { action: 'deliveries.discarded', webhookId, details })
      return count
    }),
  )
  void signalIncident(dependencies, toSignal)
  dependencies.metrics.deliveriesStopped(result)
  return result
}

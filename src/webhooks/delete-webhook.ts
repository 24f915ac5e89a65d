import type { Actor } from '../accounts/actor.ts'
import { recordAudit } from '../db/queries/audit.ts'
import { closeForGood } from '../db/queries/incidents.ts'
import { stopDeliveries } from '../db/queries/stops.ts'
import { deleteWebhook as deleteRow } from '../db/queries/webhooks.ts'
import type { WebhookCache } from '../deliveries/dispatch/webhook-cache.ts'
import { notFound } from '../errors.ts'
import { transactOnOwn } from '../incidents/transact-on-own.ts'
import { signalIncident, type SignalDependencies } from '../incidents/signal-incident.ts'
import type { CommandDependencies } from '../incidents/webhook-locks.ts'
import type { Metrics } from '../observability/metrics.ts'

type Dependencies = CommandDependencies &
  SignalDependencies & {
    webhooks: Pick<WebhookCache, 'invalidate'>
    metrics: Pick<Metrics, 'deliveriesStopped'>
  }

/** Deletes a webhook, stops its deliveries and closes its incident. */
export async function deleteWebhook(dependencies: Dependencies, actor: Actor, id: string): Promise<void> {
  const { organisationId } = actor
  const { closed, stopped } = await transactOnOwn(dependencies, actor, id, async (manager) => {
    if (!(await deleteRow(manager, organisationId, id))) throw notFound('webhook')
    await recordAudit(manager, actor, { action: 'webhook.deleted', webhookId: id })
    const incident = await closeForGood(manager, id)
    return { closed: incident, stopped: await stopDeliveries(manager, organisationId, id, 'webhook_deleted') }
  })
  dependencies.webhooks.invalidate(id)
  dependencies.metrics.deliveriesStopped(stopped)
  void signalIncident(dependencies, closed)
}

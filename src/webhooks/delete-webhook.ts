import type { Actor } from '../domain/actor.ts'
import { recordAudit } from '../db/queries/audit.ts'
import { closeOfDeletedWebhook } from '../db/queries/incidents.ts'
import { deleteWebhook as deleteRow } from '../db/queries/webhooks.ts'
import { stopUnwanted } from '../deliveries/protocol/change-deliveries.ts'
import type { WebhookChanges } from './webhook-changes.ts'
import { notFound } from '../errors.ts'
import { signalIncident, type SignalDependencies, transactOnOwn } from '../incidents/change-incident.ts'
import type { CommandDependencies } from './webhook-locks.ts'
import type { Metrics } from '../observability/metrics.ts'

type Dependencies = CommandDependencies &
  SignalDependencies & {
    webhooks: Pick<WebhookChanges, 'changed'>
    metrics: Pick<Metrics, 'deliveriesStopped'>
  }

/** Deletes a webhook, stops its deliveries and closes its incident. */
export async function deleteWebhook(dependencies: Dependencies, actor: Actor, id: string): Promise<void> {
  const { organisationId } = actor
  const { closed, stopped } = await transactOnOwn(dependencies, actor, id, async (manager) => {
    if (!(await deleteRow(manager, organisationId, id))) throw notFound('webhook')
    await recordAudit(manager, actor, { action: 'webhook.deleted', webhookId: id })
    const incident = await closeOfDeletedWebhook(manager, id)
    return { closed: incident, stopped: await stopUnwanted(manager, { organisationId, webhookId: id }) }
  })
  dependencies.webhooks.changed(id)
  dependencies.metrics.deliveriesStopped(stopped)
  void signalIncident(dependencies, closed)
}

import type { EntityManager } from 'typeorm'
import { operatorInAudit, type Operator } from '../accounts/operator.ts'
import { recordAudit } from '../db/queries/audit.ts'
import { resumeIncident, closeOfDeletedWebhook } from '../db/queries/incidents.ts'
import {
  holdWebhook as holdRow,
  releaseWebhook as releaseRow,
  type WebhookRow,
  deleteWebhook as deleteRow,
} from '../db/queries/webhooks.ts'
import { resumeUnattempted, stopUnwanted } from '../deliveries/protocol/change-deliveries.ts'
import type { Actor } from '../domain/actor.ts'
import { includesSubscription } from '../domain/permissions.ts'
import type { IncidentLabel } from '../domain/workflow-inputs.ts'
import { notFound } from '../problem-error.ts'
import { signalIncident, type SignalDependencies } from '../incidents/evaluate-notifications.ts'
import type { Metrics } from '../observability/metrics.ts'
import { transactOnOwn, type CommandDependencies, type WebhookChanges } from './webhook-locks.ts'

export type ChangeDependencies = CommandDependencies &
  SignalDependencies & {
    webhooks: Pick<WebhookChanges, 'changed'>
    metrics: Pick<Metrics, 'deliveriesStopped'>
  }

/**
 * Changes a webhook by `change`, which gets it as it is under its lock and returns it as it is afterwards. Disabling, and
 * narrowing the subscription, stop the deliveries that are no longer wanted; enabling, and widening it, resume those that
 * were stopped before any attempt. Throws 404 where the organisation has no such webhook.
 */
export async function changeWebhook(
  dependencies: ChangeDependencies,
  organisationId: string,
  id: string,
  change: (manager: EntityManager, before: WebhookRow) => Promise<WebhookRow>,
): Promise<WebhookRow> {
  let stopped = 0
  const { result, toSignal } = await transactOnOwn(
    dependencies,
    { organisationId },
    id,
    async (manager, before) => {
      const after = await change(manager, before)
      const of = { organisationId, webhookId: id }
      const [former, current] = [before.subscribedEventKeys, after.subscribedEventKeys]
      const isReduced = (before.enabled && !after.enabled) || !includesSubscription(current, former)
      let closed: IncidentLabel | null = null
      if (isReduced) ({ stopped, closed } = await stopUnwanted(manager, of))
      const isWidened = after.enabled && (!before.enabled || !includesSubscription(former, current))
      if (isWidened) await resumeUnattempted(manager, of)
      // Switching off leaves the open incident as it is: its notifications wait until the webhook is switched on again.
      const isSwitchedOn = after.enabled && !before.enabled
      return { result: after, toSignal: isSwitchedOn ? await resumeIncident(manager, of) : closed }
    },
  )
  dependencies.webhooks.changed(id)
  dependencies.metrics.deliveriesStopped(stopped)
  void signalIncident(dependencies, toSignal)
  return result
}

type OfWebhook = { organisationId: string; webhookId: string }

/**
 * Puts the operator's hold on a webhook: it is disabled, and its organisation cannot enable it, until
 * {@link releaseWebhook}. One that is held gets the new reason. Throws 404 where there is no such webhook.
 */
export function holdWebhook(
  dependencies: ChangeDependencies,
  operator: Operator,
  { organisationId, webhookId }: OfWebhook,
  reason: string,
): Promise<WebhookRow> {
  return changeWebhook(dependencies, organisationId, webhookId, async (manager, before) => {
    if (before.holdReason === reason) return before
    const after = await holdRow(manager, organisationId, { id: webhookId, reason })
    const event = { action: 'webhook.held', webhookId, details: { reason } } as const
    await recordAudit(manager, operatorInAudit(operator, organisationId), event)
    return after
  })
}

/** Ends the operator's hold: the webhook is as its organisation had it. One that is not held stays as it is. */
export function releaseWebhook(
  dependencies: ChangeDependencies,
  operator: Operator,
  { organisationId, webhookId }: OfWebhook,
): Promise<WebhookRow> {
  return changeWebhook(dependencies, organisationId, webhookId, async (manager, before) => {
    if (before.heldAt === null) return before
    const after = await releaseRow(manager, organisationId, webhookId)
    const event = { action: 'webhook.released', webhookId, details: { enabled: after.enabled } } as const
    await recordAudit(manager, operatorInAudit(operator, organisationId), event)
    return after
  })
}

/** Deletes a webhook, stops its deliveries and closes its incident. */
export async function deleteWebhook(
  dependencies: ChangeDependencies,
  actor: Actor,
  id: string,
): Promise<void> {
  const { organisationId } = actor
  const { closed, stopped } = await transactOnOwn(dependencies, actor, id, async (manager) => {
    if (!(await deleteRow(manager, organisationId, id))) throw notFound('webhook')
    await recordAudit(manager, actor, { action: 'webhook.deleted', webhookId: id })
    const of = { organisationId, webhookId: id }
    const closed = await closeOfDeletedWebhook(manager, of)
    return { closed, stopped: (await stopUnwanted(manager, of)).stopped }
  })
  dependencies.webhooks.changed(id)
  dependencies.metrics.deliveriesStopped(stopped)
  void signalIncident(dependencies, closed)
}

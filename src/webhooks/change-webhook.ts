import { isDeepStrictEqual } from 'node:util'
import type { EntityManager } from 'typeorm'
import { operatorInAudit, type Operator } from '../accounts/operator.ts'
import { recordAudit } from '../db/queries/audit.ts'
import { resumeIncident, closeOfDeletedWebhook } from '../db/queries/incidents.ts'
import {
  holdWebhook as holdRow,
  releaseWebhook as releaseRow,
  type WebhookRow,
  deleteWebhook as deleteRow,
  updateWebhook as updateRow,
} from '../db/queries/webhooks.ts'
import { resumeUnattempted, stopUnwanted } from '../deliveries/protocol/change-deliveries.ts'
import type { Actor } from '../domain/actor.ts'
import { includesSubscription } from '../domain/permissions.ts'
import type { IncidentLabel } from '../domain/workflow-inputs.ts'
import { notFound, requireSubscriptionRights, webhookDisabled } from '../problem-error.ts'
import { signalIncident, type SignalDependencies } from '../incidents/evaluate-notifications.ts'
import type { Metrics } from '../observability/metrics.ts'
import { transactOnOwn, type CommandDependencies, type WebhookChanges } from './webhook-locks.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import { urlFor, urlForAudit } from '../domain/webhook-name.ts'
import { canonicalUrl, type UrlPolicy } from '../outbound/url-rules.ts'

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
async function changeWebhook(
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

type Dependencies = ChangeDependencies & {
  catalogue: Pick<Catalogue, 'permissionFor'>
  urlPolicy: UrlPolicy
}

type Changes = Partial<Pick<WebhookRow, 'url' | 'description' | 'subscribedEventKeys' | 'enabled'>>

/**
 * Changes the given fields; what repeats the webhook as the member sees it changes nothing. What a change does to its
 * deliveries and its incident: `changeWebhook`. Requires the permissions of the subscription before and after: otherwise a
 * member could direct events that they must not see to a URL of their own. A change that only reduces what the webhook
 * does requires none of them. Throws 409 where a webhook that an operator holds would be enabled.
 */
export async function updateWebhook(
  dependencies: Dependencies,
  actor: Actor,
  id: string,
  changes: Changes,
): Promise<WebhookRow> {
  const { catalogue, urlPolicy } = dependencies
  return changeWebhook(dependencies, actor.organisationId, id, async (manager, before) => {
    // The URL as this member sees it, which may be shortened, is no new one.
    const { url: wanted = before.url } = changes
    const isSameUrl = [before.url, urlFor(actor, before, catalogue.permissionFor)].includes(wanted)
    const url = isSameUrl ? before.url : canonicalUrl(wanted, urlPolicy)
    const {
      subscribedEventKeys = before.subscribedEventKeys,
      enabled = before.enabled,
      description = before.description,
    } = changes
    const fields = { id, url, description, subscribedEventKeys, enabled }
    if (isDeepStrictEqual({ ...before, ...fields }, { ...before })) return before
    if (!isReduction(before, fields))
      requireSubscriptionRights(catalogue, actor, [...before.subscribedEventKeys, ...subscribedEventKeys])
    if (enabled && before.heldAt !== null) throw webhookDisabled(before)
    const after = await updateRow(manager, actor.organisationId, fields)
    const details = changesForAudit(before, after)
    await recordAudit(manager, actor, { action: 'webhook.updated', webhookId: id, details })
    return after
  })
}

/** `urlChanged`: two URLs may be equal once they are shortened. */
function changesForAudit(before: WebhookRow, after: WebhookRow): Record<string, unknown> {
  const shown = ({ url, description, subscribedEventKeys, enabled }: WebhookRow) => ({
    url: urlForAudit(url),
    description,
    subscribedEventKeys,
    enabled,
  })
  return { from: shown(before), to: shown(after), urlChanged: before.url !== after.url }
}

type Changeable = Pick<WebhookRow, 'url' | 'subscribedEventKeys' | 'enabled'>

/**
 * Returns whether the webhook does nothing after the change that it did not do before: it is disabled, has fewer event
 * keys, or stays as it is. Narrowing `*` to a list is a reduction too.
 */
function isReduction(before: Changeable, after: Changeable): boolean {
  if (after.enabled && !before.enabled) return false
  return (
    before.url === after.url && includesSubscription(before.subscribedEventKeys, after.subscribedEventKeys)
  )
}

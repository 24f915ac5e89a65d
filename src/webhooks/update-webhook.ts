import { isDeepStrictEqual } from 'node:util'
import type { Actor } from '../domain/actor.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import { recordAudit } from '../db/queries/audit.ts'
import { resumeIncident } from '../db/queries/incidents.ts'
import { updateWebhook as updateRow, type WebhookRow } from '../db/queries/webhooks.ts'
import { resumeUnattempted, stopUnwanted } from '../deliveries/protocol/change-deliveries.ts'
import type { WebhookChanges } from './webhook-changes.ts'
import { isCoveredBy } from '../domain/permissions.ts'
import { urlFor, urlForAudit } from '../domain/webhook-name.ts'
import { notFound } from '../errors.ts'
import { signalIncident, type SignalDependencies, transactOnOwn } from '../incidents/change-incident.ts'
import type { CommandDependencies } from './webhook-locks.ts'
import type { Metrics } from '../observability/metrics.ts'
import { canonicalUrl, type UrlPolicy } from '../outbound/url-rules.ts'
import { isReduction, requireSubscriptionRights } from './subscription-rules.ts'

type Dependencies = CommandDependencies &
  SignalDependencies & {
    catalogue: Pick<Catalogue, 'permissionFor'>
    urlPolicy: UrlPolicy
    webhooks: Pick<WebhookChanges, 'changed'>
    metrics: Pick<Metrics, 'deliveriesStopped'>
  }

type Changes = Partial<Pick<WebhookRow, 'url' | 'description' | 'subscribedEventKeys' | 'enabled'>>

/**
 * Changes the given fields; what repeats the webhook as the member sees it changes nothing. Requires the permissions of the subscription before and after: otherwise a member could
 * direct events that they must not see to a URL of their own. A change that only reduces what the webhook does requires
 * none of them. Disabling, and narrowing the subscription, stop the deliveries that are no longer wanted; enabling, and
 * widening it, resume those that were stopped before any attempt.
 */
export async function updateWebhook(
  dependencies: Dependencies,
  actor: Actor,
  id: string,
  changes: Changes,
): Promise<WebhookRow> {
  const { catalogue, urlPolicy, metrics } = dependencies
  const { organisationId } = actor
  let stopped = 0
  const { result, toSignal } = await transactOnOwn(dependencies, actor, id, async (manager, before) => {
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
    if (isDeepStrictEqual({ ...before, ...fields }, { ...before })) return { result: before, toSignal: null }
    if (!isReduction(before, fields))
      requireSubscriptionRights(catalogue, actor, [...before.subscribedEventKeys, ...subscribedEventKeys])
    const after = await updateRow(manager, organisationId, fields)
    if (after === null) throw notFound('webhook')
    const details = changesForAudit(before, after)
    await recordAudit(manager, actor, { action: 'webhook.updated', webhookId: id, details })
    const of = { organisationId, webhookId: id }
    const isReduced =
      (before.enabled && !enabled) || !isCoveredBy(subscribedEventKeys, before.subscribedEventKeys)
    if (isReduced) stopped = await stopUnwanted(manager, of)
    const isWidened =
      enabled && (!before.enabled || !isCoveredBy(before.subscribedEventKeys, subscribedEventKeys))
    if (isWidened) await resumeUnattempted(manager, of)
    // Switching off leaves the open incident as it is: its notifications wait until the webhook is switched on again.
    const isSwitchedOn = enabled && !before.enabled
    return { result: after, toSignal: isSwitchedOn ? await resumeIncident(manager, id) : null }
  })
  dependencies.webhooks.changed(id)
  metrics.deliveriesStopped(stopped)
  void signalIncident(dependencies, toSignal)
  return result
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

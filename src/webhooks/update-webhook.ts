import { isDeepStrictEqual } from 'node:util'
import type { Actor } from '../domain/actor.ts'
import { includesSubscription } from '../domain/permissions.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import { recordAudit } from '../db/queries/audit.ts'
import { updateWebhook as updateRow, type WebhookRow } from '../db/queries/webhooks.ts'
import { urlFor, urlForAudit } from '../domain/webhook-name.ts'
import { requireSubscriptionRights, webhookDisabled } from '../problem-error.ts'
import { changeWebhook, type ChangeDependencies } from './change-webhook.ts'
import { canonicalUrl, type UrlPolicy } from '../outbound/url-rules.ts'

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

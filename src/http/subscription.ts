import { findEventKey, isSubscribable } from '../catalogue/catalogue.ts'
import type { Caller } from '../db/queries/api-keys.ts'
import type { WebhookRow } from '../db/queries/webhooks.ts'
import { permissionsForSubscription, WILDCARD } from '../domain/permissions.ts'
import { isCoveredBy } from '../domain/subscription.ts'
import type { FieldError } from '../errors.ts'
import { checkWebhookUrl, type UrlPolicy } from '../outbound/url-rules.ts'
import { requirePermissions } from './guard.ts'

/** What a schema cannot say of a webhook's fields; a value of the wrong type is the schema's to refuse. */
export function webhookFieldErrors(
  fields: { readonly url?: unknown; readonly subscribedEventKeys?: unknown },
  urlPolicy: UrlPolicy,
): FieldError[] {
  const { url, subscribedEventKeys } = fields
  return [
    ...(typeof url === 'string' ? urlErrors(url, urlPolicy) : []),
    ...(Array.isArray(subscribedEventKeys) ? subscriptionErrors(subscribedEventKeys) : []),
  ]
}

/** The form in which a checked URL is stored. */
export function canonicalUrl(raw: string, urlPolicy: UrlPolicy): string {
  const checked = checkWebhookUrl(raw, urlPolicy)
  if (!checked.ok) throw new Error('the URL of a checked request is not valid')
  return checked.url
}

/** The caller must itself be allowed to see every event that the webhook gets (spec 4.1). */
export function requireSubscriptionRights(caller: Caller, eventKeys: readonly string[]): void {
  requirePermissions(caller, permissionsForSubscription(eventKeys))
}

type Changeable = Pick<WebhookRow, 'url' | 'subscribedEventKeys' | 'enabled'>

/**
 * Whether the webhook does nothing after the change that it did not do before: it is switched off, has fewer event keys,
 * or stays as it is. Narrowing `*` to a list is a removal too.
 */
export function isReduction(before: Changeable, after: Changeable): boolean {
  if (after.enabled && !before.enabled) return false
  return before.url === after.url && isCoveredBy(before.subscribedEventKeys, after.subscribedEventKeys)
}

function urlErrors(url: string, urlPolicy: UrlPolicy): FieldError[] {
  const checked = checkWebhookUrl(url, urlPolicy)
  return checked.ok ? [] : [{ pointer: '/url', code: checked.code, detail: checked.detail }]
}

function subscriptionErrors(eventKeys: readonly unknown[]): FieldError[] {
  return eventKeys.flatMap((key, index) => {
    if (typeof key !== 'string') return []
    const pointer = `/subscribedEventKeys/${index}`
    if (key === WILDCARD) {
      if (eventKeys.length === 1) return []
      return [{ pointer, code: 'wildcard_not_alone', detail: '"*" means every event and must stand alone.' }]
    }
    if (isSubscribable(key)) return []
    if (findEventKey(key) === undefined)
      return [{ pointer, code: 'unknown_event_key', detail: 'There is no such event key.' }]
    return [{ pointer, code: 'not_subscribable', detail: 'This event key cannot be subscribed to by name.' }]
  })
}

import { findEventKey, isSubscribable } from '../catalogue/catalogue.ts'
import type { Caller } from '../db/queries/api-keys.ts'
import { permissionsForSubscription, WILDCARD } from '../domain/permissions.ts'
import type { FieldError } from '../errors.ts'
import { checkWebhookUrl, type UrlPolicy } from '../outbound/url-rules.ts'
import { requirePermissions } from './guard.ts'

/** What is wrong with a list of keys to subscribe to; its items are distinct strings already. */
export function subscriptionErrors(eventKeys: readonly string[]): FieldError[] {
  return eventKeys.flatMap((key, index) => {
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

/** The canonical URL, or what is wrong with it. */
export function urlOrErrors(raw: string, policy: UrlPolicy): { url: string; errors: FieldError[] } {
  const checked = checkWebhookUrl(raw, policy)
  if (checked.ok) return { url: checked.url, errors: [] }
  return { url: raw, errors: [{ pointer: '/url', code: checked.code, detail: checked.detail }] }
}

/** The caller must itself be allowed to see every event that the webhook gets (spec 4.1). */
export function requireSubscriptionRights(caller: Caller, eventKeys: readonly string[]): void {
  requirePermissions(caller, permissionsForSubscription(eventKeys))
}

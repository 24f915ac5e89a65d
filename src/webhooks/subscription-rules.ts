import type { Catalogue } from '../catalogue/catalogue.ts'
import type { WebhookRow } from '../db/queries/webhooks.ts'
import { MAX_EVENT_KEY_LENGTH, WILDCARD, includesSubscription } from '../domain/permissions.ts'
import type { FieldError } from '../problem-error.ts'
import { checkWebhookUrl, type UrlPolicy } from '../outbound/url-rules.ts'

/** Checks rules of a webhook's fields that a schema cannot express. Values of the wrong type are left to the schema. */
export function webhookFieldErrors(
  fields: { readonly url?: unknown; readonly subscribedEventKeys?: unknown },
  { urlPolicy, catalogue }: { urlPolicy: UrlPolicy; catalogue: Catalogue },
): FieldError[] {
  const { url, subscribedEventKeys } = fields
  return [
    ...(typeof url === 'string' ? urlErrors(url, urlPolicy) : []),
    ...(Array.isArray(subscribedEventKeys) ? subscriptionErrors(subscribedEventKeys, catalogue) : []),
  ]
}

type Changeable = Pick<WebhookRow, 'url' | 'subscribedEventKeys' | 'enabled'>

/**
 * Returns whether the webhook does nothing after the change that it did not do before: it is disabled, has fewer event
 * keys, or stays as it is. Narrowing `*` to a list is a reduction too.
 */
export function isReduction(before: Changeable, after: Changeable): boolean {
  if (after.enabled && !before.enabled) return false
  return (
    before.url === after.url && includesSubscription(before.subscribedEventKeys, after.subscribedEventKeys)
  )
}

function urlErrors(url: string, urlPolicy: UrlPolicy): FieldError[] {
  const checked = checkWebhookUrl(url, urlPolicy)
  return checked.ok ? [] : [{ pointer: '/url', code: checked.code, detail: checked.detail }]
}

function subscriptionErrors(eventKeys: readonly unknown[], catalogue: Catalogue): FieldError[] {
  return eventKeys.flatMap((key, index) => {
    if (typeof key !== 'string') return []
    const pointer = `/subscribedEventKeys/${index}`
    const errors = selectedKeyErrors(key, eventKeys.length, pointer, catalogue)
    if (errors.length > 0 || key === WILDCARD || catalogue.isSubscribable(key)) return errors
    return [{ pointer, code: 'not_subscribable', detail: 'This event key cannot be subscribed to by name.' }]
  })
}

/** Checks one of the `count` event keys of a webhook or a stream. The answer repeats it: the catalogue may have lost it. */
export function selectedKeyErrors(
  key: string,
  count: number,
  pointer: string,
  { find }: Pick<Catalogue, 'find'>,
): FieldError[] {
  if (key === WILDCARD) {
    if (count === 1) return []
    return [{ pointer, code: 'wildcard_not_alone', detail: '"*" means every event and must stand alone.' }]
  }
  if (find(key) !== undefined) return []
  const shown = JSON.stringify(key.slice(0, MAX_EVENT_KEY_LENGTH))
  return [{ pointer, code: 'unknown_event_key', detail: `There is no event key ${shown}.` }]
}

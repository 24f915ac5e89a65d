import type { Catalogue } from '../catalogue/catalogue.ts'
import { MAX_EVENT_KEY_LENGTH, WILDCARD } from '../domain/permissions.ts'
import type { FieldError } from '../problem-error.ts'
import { urlErrors, type UrlPolicy } from '../outbound/url-rules.ts'

/** Checks rules of a webhook's fields that a schema cannot express. Values of the wrong type are left to the schema. */
export function webhookFieldErrors(
  fields: { readonly url?: unknown; readonly subscribedEventKeys?: unknown },
  { urlPolicy, catalogue }: { urlPolicy: UrlPolicy; catalogue: Catalogue },
): FieldError[] {
  const { url, subscribedEventKeys } = fields
  return [
    ...(typeof url === 'string' ? urlErrors('/url', url, urlPolicy) : []),
    ...(Array.isArray(subscribedEventKeys) ? subscriptionErrors(subscribedEventKeys, catalogue) : []),
  ]
}

function subscriptionErrors(eventKeys: readonly unknown[], catalogue: Catalogue): FieldError[] {
  return eventKeys.flatMap((key, index) => {
    if (typeof key !== 'string') return []
    const pointer = `/subscribedEventKeys/${index}`
    if (key === WILDCARD) {
      if (eventKeys.length === 1) return []
      return [{ pointer, code: 'wildcard_not_alone', detail: '"*" means every event and must stand alone.' }]
    }
    if (catalogue.isSubscribable(key)) return []
    if (catalogue.find(key) === undefined)
      return [{ pointer, code: 'unknown_event_key', detail: `There is no event key ${shown(key)}.` }]
    return [{ pointer, code: 'not_subscribable', detail: 'This event key cannot be subscribed to by name.' }]
  })
}

/** The key as the answer repeats it: a webhook may still subscribe to one that the catalogue has lost. */
function shown(key: string): string {
  return JSON.stringify(key.slice(0, MAX_EVENT_KEY_LENGTH))
}

import { controllerPayloads } from './controller.ts'
import { customerPayloads } from './customer.ts'
import { eventKeyFacts } from './event-keys.ts'
import type { EventKeyFacts } from './event-keys.ts'
import { invoicePayloads } from './invoice.ts'
import { nfcTagPayloads } from './nfc-tag.ts'
import { organizationSettingsPayloads } from './organization-settings.ts'
import type { PayloadShape } from './payload-shape.ts'

/** One event key as the API shows it. `schema` is null where the spec shows no payload: any JSON object will do. */
export type EventKeyEntry = EventKeyFacts & { readonly schema: object | null; readonly example: object }

/** Stands in for a payload whose shape the spec does not show. */
const UNSHAPED_EXAMPLE = { id: '01976f3e-8c1d-7a52-9b40-6d1f2e3a4b5c' }

const payloads = new Map<string, PayloadShape>(
  [
    customerPayloads,
    invoicePayloads,
    controllerPayloads,
    nfcTagPayloads,
    organizationSettingsPayloads,
  ].flatMap((family) => Object.entries(family)),
)

/** Every event key that can be published, with its payload (spec 6.1, 6.3). */
export const eventKeys: readonly EventKeyEntry[] = eventKeyFacts.map((facts) => {
  const shape = payloads.get(facts.key)
  return { ...facts, schema: shape?.schema ?? null, example: shape?.example ?? UNSHAPED_EXAMPLE }
})

const entriesByKey = new Map(eventKeys.map((entry) => [entry.key, entry]))

/** The entry of `key`, spelled exactly, or undefined where there is no such key. */
export function findEventKey(key: string): EventKeyEntry | undefined {
  return entriesByKey.get(key)
}

/** Whether a producer may publish an event under this key. */
export function isPublishable(key: string): boolean {
  return entriesByKey.has(key)
}

/** Whether a webhook may name this key among its subscriptions; the wildcard is no key and answers false. */
export function isSubscribable(key: string): boolean {
  return findEventKey(key)?.subscribable ?? false
}

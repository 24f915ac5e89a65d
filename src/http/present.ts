import type { EventKeyEntry } from '../catalogue/catalogue.ts'
import type { DeliveryRow } from '../db/queries/deliveries.ts'
import type { EventRow } from '../db/queries/events.ts'
import type { WebhookRow } from '../db/queries/webhooks.ts'
import { mayChangeWebhook, type Grants } from '../domain/permissions.ts'
import { shortenUrl } from '../domain/webhook-name.ts'
import { embedJson } from './embed-json.ts'
import { presentDelivery } from './present-delivery.ts'

/** A webhook as the API shows it to `reader`. A secret has no presenter. */
export function presentWebhook(webhook: WebhookRow, reader: Grants) {
  const { id, url, subscribedEventKeys, enabled, createdAt, updatedAt } = webhook
  return {
    id,
    url: mayChangeWebhook(reader, subscribedEventKeys) ? url : shortenUrl(url),
    subscribedEventKeys,
    enabled,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  }
}

/** JSON text of an event; the payload stands in it byte for byte as it is delivered. */
export function presentEvent(event: EventRow, deliveries: DeliveryRow[]): string {
  const { id, key, body, createdAt } = event
  return embedJson(
    { id, eventKey: key, createdAt: createdAt.toISOString() },
    'payload',
    body.toString('utf8'),
    {
      deliveries: deliveries.map(presentDelivery),
    },
  )
}

export function presentEventKey(entry: EventKeyEntry) {
  const { key, meaning, permission, subscribable, schema, example } = entry
  return { key, meaning, permission, subscribable, schema, example }
}

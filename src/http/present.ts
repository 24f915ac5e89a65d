import type { EventKeyEntry } from '../catalogue/catalogue.ts'
import type { DeliveryRow, EventRow } from '../db/queries/events.ts'
import type { WebhookRow } from '../db/queries/webhooks.ts'

/** A webhook as the API shows it. A secret has no presenter. */
export function presentWebhook(webhook: WebhookRow) {
  const { id, url, subscribedEventKeys, enabled, createdAt, updatedAt } = webhook
  return {
    id,
    url,
    subscribedEventKeys,
    enabled,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  }
}

function presentDelivery(delivery: DeliveryRow) {
  const { id, webhookId, eventId, eventKey, state, attemptCount, nextAttemptAt, createdAt, completedAt } =
    delivery
  return {
    id,
    webhookId,
    eventId,
    eventKey,
    state,
    attemptCount,
    nextAttemptAt: nextAttemptAt?.toISOString() ?? null,
    createdAt: createdAt.toISOString(),
    completedAt: completedAt?.toISOString() ?? null,
  }
}

/** JSON text of an event; the payload stands in it byte for byte as it is delivered. */
export function presentEvent(event: EventRow, deliveries: DeliveryRow[]): string {
  const head = JSON.stringify({ id: event.id, eventKey: event.key, createdAt: event.createdAt.toISOString() })
  const tail = JSON.stringify({ deliveries: deliveries.map(presentDelivery) })
  return `${head.slice(0, -1)},"payload":${event.body.toString('utf8')},${tail.slice(1)}`
}

export function presentEventKey(entry: EventKeyEntry) {
  const { key, meaning, permission, subscribable, schema, example } = entry
  return { key, meaning, permission, subscribable, schema, example }
}

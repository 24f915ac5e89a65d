import type { EventKeyEntry } from '../../catalogue/catalogue.ts'
import type { DeliveryRow } from '../../db/queries/deliveries.ts'
import type { EventSummaryRow, EventRow } from '../../db/queries/events.ts'
import type { Grants, PermissionFor } from '../../domain/permissions.ts'
import { presentDelivery } from './delivery.ts'
import { embedJson, presentErasure, presentPayload } from './payload.ts'

/** Returns the JSON text of an event with the states of its deliveries. */
export function presentEvent(
  event: EventRow,
  deliveries: DeliveryRow[],
  reader: Grants,
  permissionFor: PermissionFor,
): string {
  const { id, eventKey, createdAt, traceId } = event
  return embedJson(
    { id, eventKey, createdAt: createdAt.toISOString(), traceId, payloadErased: presentErasure(event) },
    'payload',
    presentPayload(event, reader, permissionFor),
    { deliveries: deliveries.map((delivery) => presentDelivery(delivery, reader)) },
  )
}

export function presentEventSummary(event: EventSummaryRow) {
  const { id, eventKey, createdAt, traceId, isTest, deliveries } = event
  const { total, completed, waiting, failed, stopped, pending, inProgress } = deliveries
  const counts = { total, completed, waiting, failed, stopped, pending, inProgress }
  return { id, eventKey, createdAt: createdAt.toISOString(), traceId, isTest, deliveries: counts }
}

export function presentEventKey(entry: EventKeyEntry) {
  const { key, meaning, permission, subscribable, schema, example } = entry
  return { key, meaning, permission, subscribable, schema, example }
}

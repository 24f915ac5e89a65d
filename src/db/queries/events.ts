import type { DeliveryState } from '../../domain/delivery-state.ts'
import { firstRow, rows, type Db } from '../db.ts'

export type NewEvent = {
  id: string
  organisationId: string
  key: string
  body: Buffer
  emittedAt: Date
  traceId: string
}

/** A delivery that waits for its workflow: what the starter needs to know of it. */
export type DeliveryToStart = {
  deliveryId: string
  organisationId: string
  webhookId: string
  eventKey: string
  url: string
}

/**
 * Writes an event and one `pending` delivery per enabled webhook that subscribed to its key or to `*`,
 * in one statement (and so in one transaction, where the caller has none of its own).
 * The deliveries belong to `owner` for `leaseMs`; they come back in the order their ids were given.
 */
export async function insertEventWithDeliveries(
  db: Db,
  event: NewEvent,
  lease: { owner: string; leaseMs: number },
): Promise<DeliveryToStart[]> {
  return rows(
    db,
    `WITH new_event AS (
       INSERT INTO event (id, organisation_id, key, body, emitted_at, trace_id)
       VALUES ($1::uuid, $2::text, $3::text, $4, $5, $6)
     ), matching AS (
       SELECT id, url FROM webhook
        WHERE organisation_id = $2 AND deleted_at IS NULL AND enabled
          AND (subscribed_event_keys @> ARRAY[$3] OR subscribed_event_keys = ARRAY['*'])
     ), new_delivery AS (
       INSERT INTO delivery (id, event_id, webhook_id, organisation_id, state, owner, lease_until, sweep_at)
       SELECT uuidv7(), $1, id, $2, 'pending', $7::uuid, now() + $8 * interval '1 ms', now() + $8 * interval '1 ms'
         FROM matching
       RETURNING id, webhook_id
     )
     SELECT d.id AS "deliveryId", $2 AS "organisationId", d.webhook_id AS "webhookId", $3 AS "eventKey", m.url
       FROM new_delivery d JOIN matching m ON m.id = d.webhook_id
      ORDER BY d.id`,
    [
      event.id,
      event.organisationId,
      event.key,
      event.body,
      event.emittedAt,
      event.traceId,
      lease.owner,
      lease.leaseMs,
    ],
  )
}

export type EventRow = { id: string; key: string; body: Buffer; createdAt: Date }

export async function findEvent(db: Db, organisationId: string, id: string): Promise<EventRow | null> {
  return firstRow(
    db,
    `SELECT id, key, body, created_at AS "createdAt" FROM event WHERE organisation_id = $1 AND id = $2`,
    [organisationId, id],
  )
}

/** A delivery as the API shows it. */
export type DeliveryRow = {
  id: string
  webhookId: string
  eventId: string
  eventKey: string
  state: DeliveryState
  attemptCount: number
  nextAttemptAt: Date | null
  createdAt: Date
  completedAt: Date | null
}

export async function listDeliveriesOfEvent(
  db: Db,
  organisationId: string,
  eventId: string,
): Promise<DeliveryRow[]> {
  return rows(
    db,
    `SELECT d.id, d.webhook_id AS "webhookId", d.event_id AS "eventId", e.key AS "eventKey", d.state,
            d.attempts AS "attemptCount", d.next_attempt_at AS "nextAttemptAt",
            d.created_at AS "createdAt", d.completed_at AS "completedAt"
       FROM delivery d JOIN event e ON e.id = d.event_id
      WHERE d.organisation_id = $1 AND d.event_id = $2
      ORDER BY d.id`,
    [organisationId, eventId],
  )
}

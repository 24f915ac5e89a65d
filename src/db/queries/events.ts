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
    [...eventParameters(event), lease.owner, lease.leaseMs],
  )
}

/** The same for several events in one statement: either all of them are committed or none. In the order of `events`. */
export async function insertEventsWithDeliveries(
  db: Db,
  events: readonly NewEvent[],
  lease: { owner: string; leaseMs: number },
): Promise<DeliveryToStart[][]> {
  const found = await rows<DeliveryToStart & { eventId: string }>(
    db,
    `WITH given AS (
       SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::bytea[], $5::timestamptz[], $6::text[])
           AS given (id, organisation_id, key, body, emitted_at, trace_id)
     ), new_event AS (
       INSERT INTO event (id, organisation_id, key, body, emitted_at, trace_id)
       SELECT id, organisation_id, key, body, emitted_at, trace_id FROM given
     ), matching AS (
       SELECT g.id AS event_id, g.organisation_id, g.key, w.id AS webhook_id, w.url
         FROM given g JOIN webhook w ON w.organisation_id = g.organisation_id
        WHERE w.deleted_at IS NULL AND w.enabled
          AND (w.subscribed_event_keys @> ARRAY[g.key] OR w.subscribed_event_keys = ARRAY['*'])
     ), new_delivery AS (
       INSERT INTO delivery (id, event_id, webhook_id, organisation_id, state, owner, lease_until, sweep_at)
       SELECT uuidv7(), event_id, webhook_id, organisation_id, 'pending', $7::uuid, now() + $8 * interval '1 ms',
              now() + $8 * interval '1 ms'
         FROM matching
       RETURNING id, event_id, webhook_id
     )
     SELECT d.id AS "deliveryId", d.event_id AS "eventId", m.organisation_id AS "organisationId",
            d.webhook_id AS "webhookId", m.key AS "eventKey", m.url
       FROM new_delivery d JOIN matching m ON m.event_id = d.event_id AND m.webhook_id = d.webhook_id
      ORDER BY d.id`,
    [
      events.map(({ id }) => id),
      events.map(({ organisationId }) => organisationId),
      events.map(({ key }) => key),
      events.map(({ body }) => body),
      events.map(({ emittedAt }) => emittedAt),
      events.map(({ traceId }) => traceId),
      lease.owner,
      lease.leaseMs,
    ],
  )
  const byEvent = new Map(events.map(({ id }) => [id, [] as DeliveryToStart[]]))
  for (const { eventId, ...delivery } of found) byEvent.get(eventId)?.push(delivery)
  return [...byEvent.values()]
}

/**
 * Writes an event for one webhook only, whatever it is subscribed to, and its delivery.
 * Null, and nothing written, when the webhook is not live.
 */
export async function insertTestEvent(
  db: Db,
  event: NewEvent,
  webhookId: string,
  lease: { owner: string; leaseMs: number },
): Promise<DeliveryToStart | null> {
  return firstRow(
    db,
    `WITH hook AS (
       SELECT id, url FROM webhook WHERE organisation_id = $2 AND id = $9 AND enabled AND deleted_at IS NULL
     ), new_event AS (
       INSERT INTO event (id, organisation_id, key, body, emitted_at, trace_id)
       SELECT $1::uuid, $2::text, $3::text, $4::bytea, $5::timestamptz, $6 FROM hook
     ), new_delivery AS (
       INSERT INTO delivery (id, event_id, webhook_id, organisation_id, state, owner, lease_until, sweep_at)
       SELECT uuidv7(), $1, id, $2, 'pending', $7::uuid, now() + $8 * interval '1 ms', now() + $8 * interval '1 ms'
         FROM hook
       RETURNING id
     )
     SELECT d.id AS "deliveryId", $2 AS "organisationId", hook.id AS "webhookId", $3 AS "eventKey", hook.url
       FROM new_delivery d CROSS JOIN hook`,
    [...eventParameters(event), lease.owner, lease.leaseMs, webhookId],
  )
}

/** $1 to $6 of the statements above. */
function eventParameters(event: NewEvent): unknown[] {
  return [event.id, event.organisationId, event.key, event.body, event.emittedAt, event.traceId]
}

export type EventRow = { id: string; key: string; body: Buffer; createdAt: Date }

export async function findEvent(db: Db, organisationId: string, id: string): Promise<EventRow | null> {
  return firstRow(
    db,
    `SELECT id, key, body, created_at AS "createdAt" FROM event WHERE organisation_id = $1 AND id = $2`,
    [organisationId, id],
  )
}

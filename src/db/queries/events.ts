// Hand-written: events and their deliveries are fanned out in one prepared statement.
import type { DeliveryLabel } from '../../domain/workflow-labels.ts'
import { sql, type Db } from '../db.ts'

export type NewEvent = {
  id: string
  organisationId: string
  key: string
  body: Buffer
  emittedAt: Date
  traceId: string
}

/** A delivery that waits for its first attempt: what the dispatcher needs to know of it. */
export type DeliveryToStart = DeliveryLabel & {
  /** Its webhook has an open incident. */
  hasOpenIncident: boolean
  /** When the query was sent, on `performance.now()`. */
  readAtMs: number
  /** What else a first attempt needs; null where it has to be read again. `secret` is sealed. */
  fresh: { body: Buffer; secret: string | null; traceId: string } | null
}

type InsertedDelivery = Omit<DeliveryToStart, 'fresh' | 'readAtMs'> & {
  eventId: string
  secret: string | null
}

/** Of webhook `w`. */
export const HAS_OPEN_INCIDENT = `EXISTS (SELECT 1 FROM incident i WHERE i.webhook_id = w.id AND i.closed_at IS NULL) AS "hasOpenIncident"`

/** The events that the statements below write (`eventParameters`). The payloads are sent as one value, as they are. */
const GIVEN = `given AS (
   SELECT id, organisation_id, key, emitted_at, trace_id, substring(:bodies::bytea FROM start FOR length) AS body
     FROM unnest(:ids::uuid[], :organisationIds::text[], :keys::text[], :emittedAts::timestamptz[], :traceIds::text[], :starts::int[], :lengths::int[])
       AS given (id, organisation_id, key, emitted_at, trace_id, start, length)
 )`

/** What the statements below give of a delivery and its webhook. */
const INSERTED = `d.id AS "deliveryId", d.event_id AS "eventId", d.webhook_id AS "webhookId", m.organisation_id AS "organisationId",
  m.key AS "eventKey", m.url, m.secret, m."hasOpenIncident"`

const INSERT_EVENTS = `WITH ${GIVEN}, new_event AS (
   INSERT INTO event (id, organisation_id, key, body, emitted_at, trace_id)
   SELECT id, organisation_id, key, body, emitted_at, trace_id FROM given
 ), matching AS (
   SELECT g.id AS event_id, g.organisation_id, g.key, w.id AS webhook_id, w.url, w.secret, ${HAS_OPEN_INCIDENT}
     FROM given g JOIN webhook w ON w.organisation_id = g.organisation_id
    WHERE w.deleted_at IS NULL AND w.enabled
      AND (w.subscribed_event_keys @> ARRAY[g.key] OR w.subscribed_event_keys = ARRAY['*'])
 ), new_delivery AS (
   INSERT INTO delivery (id, event_id, webhook_id, organisation_id, state, owner, lease_until, sweep_at)
   SELECT uuidv7(), event_id, webhook_id, organisation_id, 'pending', :owner::uuid, now() + :leaseMs * interval '1 ms',
          now() + :leaseMs * interval '1 ms'
     FROM matching
   RETURNING id, event_id, webhook_id
 )
 SELECT ${INSERTED}
   FROM new_delivery d JOIN matching m ON m.event_id = d.event_id AND m.webhook_id = d.webhook_id
  ORDER BY d.id` as const

/**
 * Writes events, and for each one `pending` delivery per enabled webhook that subscribed to its key or to `*`, in one
 * statement: either all of them are committed or none. The deliveries belong to `owner` for `leaseMs`; they come back
 * per event in the order of `events`, and in the order their ids were given.
 */
export async function insertEventsWithDeliveries(
  db: Db,
  events: readonly NewEvent[],
  lease: { owner: string; leaseMs: number },
): Promise<DeliveryToStart[][]> {
  const readAtMs = performance.now()
  const { owner, leaseMs } = lease
  const statement = sql(INSERT_EVENTS, { ...eventParameters(events), owner, leaseMs })
  const found = await statement.preparedRows<InsertedDelivery>(db, 'insert_events')
  const given = new Map(events.map((event) => [event.id, event]))
  const byEvent = new Map(events.map(({ id }) => [id, [] as DeliveryToStart[]]))
  for (const inserted of found) {
    const event = given.get(inserted.eventId)
    if (event !== undefined) byEvent.get(event.id)?.push(toStart(inserted, event, readAtMs))
  }
  return [...byEvent.values()]
}

/**
 * Writes a test event for one webhook only, whatever it is subscribed to, and its delivery.
 * Null, and nothing written, when the webhook is not live.
 */
export async function insertTestEvent(
  db: Db,
  event: NewEvent,
  webhookId: string,
  lease: { owner: string; leaseMs: number },
): Promise<DeliveryToStart | null> {
  const readAtMs = performance.now()
  const found = await sql(
    `WITH ${GIVEN}, matching AS (
       SELECT g.*, w.id AS webhook_id, w.url, w.secret, ${HAS_OPEN_INCIDENT}
         FROM given g JOIN webhook w ON w.organisation_id = g.organisation_id
        WHERE w.id = :webhookId AND w.enabled AND w.deleted_at IS NULL
     ), new_event AS (
       INSERT INTO event (id, organisation_id, key, body, emitted_at, trace_id, is_test)
       SELECT id, organisation_id, key, body, emitted_at, trace_id, true FROM matching
     ), new_delivery AS (
       INSERT INTO delivery (id, event_id, webhook_id, organisation_id, state, is_test, owner, lease_until, sweep_at)
       SELECT uuidv7(), id, webhook_id, organisation_id, 'pending', true, :owner::uuid, now() + :leaseMs * interval '1 ms',
              now() + :leaseMs * interval '1 ms'
         FROM matching
       RETURNING id, event_id, webhook_id
     )
     SELECT ${INSERTED} FROM new_delivery d CROSS JOIN matching m`,
    { ...eventParameters([event]), owner: lease.owner, leaseMs: lease.leaseMs, webhookId },
  ).first<InsertedDelivery>(db)
  return found === null ? null : toStart(found, event, readAtMs)
}

function toStart(inserted: InsertedDelivery, { body, traceId }: NewEvent, readAtMs: number): DeliveryToStart {
  const { deliveryId, organisationId, webhookId, eventKey, url, hasOpenIncident, secret } = inserted
  const fresh = { body, secret, traceId }
  return { deliveryId, organisationId, webhookId, eventKey, url, hasOpenIncident, readAtMs, fresh }
}

/** The parameters of `GIVEN`. */
function eventParameters(events: readonly NewEvent[]) {
  let next = 1
  const starts = events.map(({ body }) => (next += body.length) - body.length)
  return {
    ids: events.map(({ id }) => id),
    organisationIds: events.map(({ organisationId }) => organisationId),
    keys: events.map(({ key }) => key),
    emittedAts: events.map(({ emittedAt }) => emittedAt),
    traceIds: events.map(({ traceId }) => traceId),
    bodies: Buffer.concat(events.map(({ body }) => body)),
    starts,
    lengths: events.map(({ body }) => body.length),
  }
}

export type EventRow = { id: string; eventKey: string; body: Buffer; traceId: string; createdAt: Date }

export async function findEvent(db: Db, organisationId: string, id: string): Promise<EventRow | null> {
  return sql(
    `SELECT id, key AS "eventKey", body, trace_id AS "traceId", created_at AS "createdAt" FROM event
      WHERE organisation_id = :organisationId AND id = :id`,
    { organisationId, id },
  ).first(db)
}

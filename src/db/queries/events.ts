// Hand-written: reads with the names of the API, and the statements of an erasure.
import { sql, type Db } from '../connection/db.ts'

/** The payload of an event; where it is erased, since when and by whom. */
export type StoredPayload = { body: Buffer | null; erasedAt: Date | null; erasedBy: string | null }

/** The columns of a {@link StoredPayload} of event `e`. */
export const PAYLOAD_COLUMNS = `e.body, e.erased_at AS "erasedAt", e.erased_by AS "erasedBy"`

export type EventRow = { id: string; eventKey: string; traceId: string; createdAt: Date } & StoredPayload

export async function findEvent(db: Db, organisationId: string, id: string): Promise<EventRow | null> {
  return sql(
    `SELECT id, key AS "eventKey", trace_id AS "traceId", created_at AS "createdAt", ${PAYLOAD_COLUMNS} FROM event e
      WHERE organisation_id = :organisationId AND id = :id`,
    { organisationId, id },
  ).first(db)
}

type OneEvent = { organisationId: string; eventId: string }

/** Erases the payload. Returns the key of the event; null where there is no such event, or no payload any more. */
export async function eraseBody(db: Db, of: OneEvent & { by: string }): Promise<string | null> {
  const erased = await sql(
    `UPDATE event SET body = NULL, erased_at = now(), erased_by = :by
      WHERE organisation_id = :organisationId AND id = :eventId AND body IS NOT NULL RETURNING key`,
    of,
  ).first<{ key: string }>(db)
  return erased?.key ?? null
}

/** Erases what endpoints answered to the event. */
export async function eraseAnswers(db: Db, of: OneEvent): Promise<void> {
  await sql(
    `UPDATE attempt a SET response_headers = NULL, response_body = NULL, response_truncated = false
       FROM delivery d
      WHERE d.organisation_id = :organisationId AND d.event_id = :eventId AND a.delivery_id = d.id
        AND a.response_headers IS NOT NULL`,
    of,
  ).rows(db)
}

/** The webhooks with deliveries of the event that are not final. `isUnderWay`: one of them is in progress. */
export function listOpenOfEvent(db: Db, of: OneEvent): Promise<{ webhookId: string; isUnderWay: boolean }[]> {
  return sql(
    `SELECT webhook_id AS "webhookId", bool_or(state = 'in_progress') AS "isUnderWay" FROM delivery
      WHERE organisation_id = :organisationId AND event_id = :eventId AND completed_at IS NULL GROUP BY webhook_id`,
    of,
  ).rows(db)
}

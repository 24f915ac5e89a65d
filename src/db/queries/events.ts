// Hand-written: one read with the names of the API.
import { sql, type Db } from '../connection/db.ts'

export type EventRow = { id: string; eventKey: string; body: Buffer; traceId: string; createdAt: Date }

export async function findEvent(db: Db, organisationId: string, id: string): Promise<EventRow | null> {
  return sql(
    `SELECT id, key AS "eventKey", body, trace_id AS "traceId", created_at AS "createdAt" FROM event
      WHERE organisation_id = :organisationId AND id = :id`,
    { organisationId, id },
  ).first(db)
}

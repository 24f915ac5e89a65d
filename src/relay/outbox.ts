// Hand-written: the table belongs to the platform, whose database has no entities of ours.
import { readFileSync } from 'node:fs'
import type { DataSource } from 'typeorm'
import { sql } from '../db/connection/db.ts'
import { MAX_EVENT_BYTES } from '../domain/text-rules.ts'

/** Returns the SQL file that makes the outbox in the platform's database. */
export function outboxSql(): string {
  return readFileSync(new URL('./outbox.sql', import.meta.url), 'utf8')
}

/** A committed row that is neither published nor parked. */
export type OutboxRow = {
  id: string
  event: string
  /** JSON text, unchecked; null where it is larger than an event may be. */
  data: string | null
  traceId: string | null
  spanId: string | null
  /** JSON text. */
  triggeredBy: string | null
  /** Unix microseconds. */
  createdUs: string
  attempts: number
  /** Older than an idempotency key lives, by PostgreSQL's clock. */
  isLate: boolean
  /** Its next try is not due yet. */
  isPostponed: boolean
}

/** The organisation of the lowest waiting id, and in how many ms that row may be tried; 0 for at once. */
export type Head = { organisationId: string; dueInMs: number }

const IS_WAITING = 'published_at IS NULL AND parked_at IS NULL'

/** Returns up to `limit` organisations with waiting rows, the first one behind `after`: one probe of the index for each. */
export function listHeads(
  db: DataSource,
  { after, limit }: { after: string; limit: number },
): Promise<Head[]> {
  return sql(
    `WITH RECURSIVE head AS (
       (SELECT organisation_id, retry_at FROM posthorn_outbox
         WHERE ${IS_WAITING} AND organisation_id > :after ORDER BY organisation_id, id LIMIT 1)
       UNION ALL
       SELECT next.* FROM head, LATERAL (
         SELECT o.organisation_id, o.retry_at FROM posthorn_outbox o
          WHERE ${IS_WAITING} AND o.organisation_id > head.organisation_id
          ORDER BY o.organisation_id, o.id LIMIT 1) next
     )
     SELECT organisation_id AS "organisationId",
            -- Numbers, since PostgreSQL 15 and 16 subtract no infinite timestamps.
            greatest(0, (extract(epoch FROM retry_at) - extract(epoch FROM now())) * 1000)::float8 AS "dueInMs"
       FROM head LIMIT :limit`,
    { after, limit },
  ).rows<Head>(db)
}

/** Returns the first `limit` waiting rows of an organisation in the order of their ids. */
export function readWaiting(db: DataSource, organisationId: string, limit: number): Promise<OutboxRow[]> {
  return sql(
    `SELECT id::text, event, CASE WHEN octet_length(data) <= :maxBytes THEN data END AS data,
            trace_id AS "traceId", span_id AS "spanId", triggered_by::text AS "triggeredBy",
            trunc(extract(epoch FROM created_at) * 1000000)::text AS "createdUs", attempts,
            created_at < now() - interval '24 hours' AS "isLate",
            coalesce(retry_at > now(), false) AS "isPostponed"
       FROM posthorn_outbox
      WHERE ${IS_WAITING} AND organisation_id = :organisationId
      ORDER BY posthorn_outbox.id LIMIT :limit`,
    { organisationId, limit, maxBytes: MAX_EVENT_BYTES },
  ).rows<OutboxRow>(db)
}

/** Deletes published rows, or marks them where they are kept. */
export async function recordPublished(
  db: DataSource,
  ids: readonly string[],
  { keep }: { keep: boolean },
): Promise<void> {
  const statement = keep
    ? `UPDATE posthorn_outbox SET published_at = now(), error = NULL, retry_at = NULL WHERE id = ANY(:ids::bigint[])`
    : `DELETE FROM posthorn_outbox WHERE id = ANY(:ids::bigint[])`
  await sql(statement as string, { ids }).rows(db)
}

/** Records a failed try; the row, and so its organisation, waits for `delayMs`. */
export async function postpone(
  db: DataSource,
  id: string,
  { error, delayMs }: { error: string; delayMs: number },
): Promise<void> {
  await sql(
    `UPDATE posthorn_outbox
        SET attempts = attempts + 1, error = :error, retry_at = now() + :delayMs * interval '1 millisecond'
      WHERE id = :id`,
    { id, error, delayMs },
  ).rows(db)
}

/** Takes a refused row out of the order. */
export async function park(db: DataSource, id: string, error: string): Promise<void> {
  await sql(
    `UPDATE posthorn_outbox SET attempts = attempts + 1, error = :error, retry_at = NULL, parked_at = now()
      WHERE id = :id`,
    { id, error },
  ).rows(db)
}

/** Deletes up to `limit` rows that were published `hours` ago; returns how many. */
export async function purgePublished(
  db: DataSource,
  { hours, limit }: { hours: number; limit: number },
): Promise<number> {
  const deleted = await sql(
    `DELETE FROM posthorn_outbox WHERE id IN (
       SELECT id FROM posthorn_outbox WHERE published_at < now() - :hours * interval '1 hour'
        ORDER BY published_at LIMIT :limit FOR UPDATE SKIP LOCKED)
     RETURNING 1`,
    { hours, limit },
  ).rows(db)
  return deleted.length
}

/** The rows that are not published, counted up to MAX_COUNTED of each kind; `oldestAge` in seconds. */
export type OutboxFigures = { waiting: number; late: number; parked: number; oldestAge: number }

const MAX_COUNTED = 100_000

export function readFigures(db: DataSource): Promise<OutboxFigures> {
  return sql(
    `SELECT count(*)::int AS waiting, coalesce(extract(epoch FROM now() - min(created_at)), 0)::float8 AS "oldestAge",
            (count(*) FILTER (WHERE created_at < now() - interval '24 hours'))::int AS late,
            (SELECT count(*)::int FROM (SELECT FROM posthorn_outbox WHERE parked_at IS NOT NULL
                                         LIMIT ${MAX_COUNTED}) rows) AS parked
       FROM (SELECT created_at FROM posthorn_outbox WHERE ${IS_WAITING} LIMIT ${MAX_COUNTED}) rows`,
  ).one(db)
}

/** Returns the rights that the role lacks; null where there is no outbox. */
export function findOutbox(db: DataSource): Promise<{ missingRights: string[] } | null> {
  return sql(
    `SELECT ARRAY(SELECT name FROM unnest(ARRAY['SELECT', 'UPDATE', 'DELETE']) name
                   WHERE NOT has_table_privilege(to_regclass('posthorn_outbox'), name)) AS "missingRights"
      WHERE to_regclass('posthorn_outbox') IS NOT NULL`,
  ).first(db)
}

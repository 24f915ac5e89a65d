// Hand-written: batches of rows are locked, passed over where locked, and deleted in one statement.
import type { DataSource, EntityManager } from 'typeorm'
import type { PurgeInput } from '../../domain/workflow-inputs.ts'
import { transactLonger } from '../connection/database-client.ts'
import { sql, type Db } from '../connection/db.ts'

/**
 * Where a batch ended, in the order of age. The time is PostgreSQL's own text, since a Date would lose microseconds.
 */
export type PurgeCursor = { at: string; id: string }

export const FROM_THE_OLDEST: PurgeCursor = { at: '-infinity', id: '00000000-0000-0000-0000-000000000000' }

/** What one batch deleted, and where the next one begins; null when nothing is left. */
export type PurgedBatch = { deliveries: number; events: number; next: PurgeCursor | null }

/** One batch of a walk: rows older than `days`, at most `limit` of them, after the ones before `after`. */
export type PurgePage = { days: number; after: PurgeCursor; limit: number }

/** Like `sweep`, these serve every organisation at once. The clock is PostgreSQL's. */
const TOO_OLD = `now() - :days::int * interval '24 hours'`

/** A page of a walk over `column`, which an index serves. The cursor keeps what was passed from being read again. */
const page = (column: string): string => `${column} < ${TOO_OLD}
  AND ${column} >= :at::timestamptz AND (${column}, id) > (:at::timestamptz, :id::uuid)
  ORDER BY ${column}, id LIMIT :limit`

/**
 * The planner takes an array that it cannot see for a short one. A thousand ids that it can see make it read small
 * tables as a whole, for every batch again.
 */
const among = (ids: string): string => `id = ANY(ARRAY(SELECT unnest(${ids}::uuid[])))`

/** Its workflow needs no signal any more. */
const IS_DELETABLE = `(state = 'completed' OR sweep_at IS NULL)`

const pageParameters = ({ days, after: { at, id }, limit }: PurgePage) => ({ days, at, id, limit })

/**
 * Deletes one batch of deliveries that have been in a final state for more than `days`, their attempts (by cascade),
 * and the events whose last delivery went with them, in one transaction. Never a failed or stopped one whose workflow
 * is still to be signalled; a completed one is deleted by its age alone. Rows that another transaction has locked are
 * passed over (SKIP LOCKED), an event with its deliveries; a later run deletes them. An open incident stays open without
 * them: only a success, a discard or the end of its webhook closes it. Lock order: event, delivery, as in the erasure of
 * a payload.
 */
export async function purgeDeliveries(
  dataSource: DataSource,
  state: 'completed' | 'failed' | 'stopped',
  { days, after, limit }: PurgePage,
): Promise<PurgedBatch> {
  return transactLonger(dataSource, async (manager) => {
    const candidates = await sql(
      `SELECT id, event_id AS "eventId", completed_at::text AS at FROM delivery
        WHERE state = :state AND completed_at IS NOT NULL AND ${IS_DELETABLE} AND ${page('completed_at')}`,
      { ...pageParameters({ days, after, limit }), state },
    ).rows<{ id: string; eventId: string; at: string }>(manager)
    const eventIds = await lockEvents(
      manager,
      candidates.map(({ eventId }) => eventId),
    )
    const isLocked = new Set(eventIds)
    const deliveryIds = candidates.filter(({ eventId }) => isLocked.has(eventId)).map(({ id }) => id)
    const deleted = await sql(
      `DELETE FROM delivery WHERE id = ANY(ARRAY(
         SELECT id FROM delivery
          WHERE ${among(':deliveryIds')} AND state = :state AND completed_at < ${TOO_OLD} AND ${IS_DELETABLE}
            FOR UPDATE SKIP LOCKED
       )) RETURNING 1`,
      { days, deliveryIds, state },
    ).rows(manager)
    const events = await deleteEventsWithoutDeliveries(manager, eventIds)
    return { deliveries: deleted.length, events, next: nextAfter(candidates, limit) }
  })
}

/**
 * Reads one batch of events older than `days` and deletes those that have no delivery: no webhook was subscribed, or
 * theirs were deleted before. The others wait for their last delivery to go.
 */
export async function purgeEvents(
  dataSource: DataSource,
  { days, after, limit }: PurgePage,
): Promise<PurgedBatch> {
  return transactLonger(dataSource, async (manager) => {
    const candidates = await sql(
      `SELECT id, created_at::text AS at FROM event WHERE ${page('created_at')}`,
      pageParameters({ days, after, limit }),
    ).rows<{ id: string; at: string }>(manager)
    const ids = await lockEvents(
      manager,
      candidates.map(({ id }) => id),
    )
    const events = await deleteEventsWithoutDeliveries(manager, ids)
    return { deliveries: 0, events, next: nextAfter(candidates, limit) }
  })
}

/**
 * Locks events before their deliveries, and returns the ids of those that no other transaction has locked. Of two purges
 * that read one of an event's last two deliveries each, only one may delete: neither would see the other's deletion.
 */
function lockEvents(manager: EntityManager, ids: string[]): Promise<string[]> {
  return sql(`SELECT id FROM event WHERE ${among(':ids')} FOR UPDATE SKIP LOCKED`, { ids }).ids(manager)
}

async function deleteEventsWithoutDeliveries(manager: EntityManager, ids: string[]): Promise<number> {
  if (ids.length === 0) return 0
  // A stream that resumes from before the horizon reports it: written in the same transaction, so that none sees
  // the one without the other.
  const deleted = await sql(
    `WITH gone AS (
       DELETE FROM event
        WHERE ${among(':ids')} AND NOT EXISTS (SELECT 1 FROM delivery WHERE event_id = event.id)
       RETURNING id, organisation_id, sequence
     ), noted AS (
       INSERT INTO event_horizon (organisation_id, sequence)
       SELECT organisation_id, max(sequence) FROM gone GROUP BY organisation_id ORDER BY organisation_id
       ON CONFLICT (organisation_id) DO UPDATE SET sequence = greatest(event_horizon.sequence, EXCLUDED.sequence)
     ) SELECT id FROM gone`,
    { ids },
  ).rows(manager)
  return deleted.length
}

/** Finds the oldest delivery that should have been deleted a day ago, by one index probe of each state. */
export function findUnpurged(
  db: Db,
  { completedDays, failedDays }: Omit<PurgeInput, 'auditDays'>,
): Promise<{ state: string; completedAt: Date; days: number } | null> {
  return sql(
    `SELECT kept.state, completed_at AS "completedAt", days
       FROM (VALUES ('completed', :completedDays::int), ('failed', :failedDays), ('stopped', :failedDays)) kept (state, days)
      CROSS JOIN LATERAL (
        SELECT completed_at FROM delivery
         WHERE state = kept.state AND completed_at < now() - (days + 1) * interval '24 hours' AND ${IS_DELETABLE}
         ORDER BY completed_at LIMIT 1
      ) oldest ORDER BY completed_at LIMIT 1`,
    { completedDays, failedDays },
  ).first(db)
}

/** Deletes up to `limit` incidents that were closed more than `days` ago, with their notifications; returns how many. */
export function purgeIncidents(db: Db, days: number, limit: number): Promise<number> {
  const which = `closed_at < ${TOO_OLD} AND sweep_at IS NULL ORDER BY closed_at`
  return deleteUnlocked(db, 'incident', which, { days, limit })
}

/** Deletes up to `limit` audit entries older than `days`, which must be 30 at least; returns how many. */
export function purgeAudit(db: Db, days: number, limit: number): Promise<number> {
  return deleteUnlocked(db, 'audit_entry', `at < ${TOO_OLD} ORDER BY at`, { days, limit })
}

/** Deletes up to `limit` retry jobs that have ended and are older than 30 days, with their progress; returns how many. */
export function purgeRetryJobs(db: Db, limit: number): Promise<number> {
  const which = `state <> 'running' AND created_at < now() - interval '30 days'`
  return deleteUnlocked(db, 'retry_job', which, { limit })
}

/**
 * Deletes up to `limit` idempotency keys that no longer count; returns how many. They count for 24 hours: the minute
 * more is for a request that has just found its key and goes on to read the answer.
 */
export function purgeIdempotencyKeys(db: Db, limit: number): Promise<number> {
  const which = `created_at < now() - interval '24 hours 1 minute' ORDER BY created_at`
  return deleteUnlocked(db, 'idempotency_key', which, { limit })
}

/** Deletes the first rows of a table that are not locked; `which` is the condition with the order. Returns how many. */
export async function deleteUnlocked(
  db: Db,
  table: 'event' | 'incident' | 'audit_entry' | 'retry_job' | 'idempotency_key',
  which: string,
  parameters: { limit: number; days?: number; organisationId?: string },
): Promise<number> {
  const deleted = await sql(
    `DELETE FROM ${table} WHERE ctid = ANY(ARRAY(
       SELECT ctid FROM ${table} WHERE ${which} LIMIT :limit FOR UPDATE SKIP LOCKED)) RETURNING 1`,
    parameters,
  ).rows(db)
  return deleted.length
}

function nextAfter(candidates: readonly PurgeCursor[], limit: number): PurgeCursor | null {
  const last = candidates.at(-1)
  return last === undefined || candidates.length < limit ? null : { at: last.at, id: last.id }
}

// Hand-written: statistics over partial indexes.
import type { DataSource } from 'typeorm'
import { sql, type Db } from '../db.ts'
import { STARTED, UNSTARTED } from './recovery.ts'

/** What is not at its end, over all organisations. Ages are in seconds, 0 where there is nothing. */
export type Backlog = {
  pending: number
  inProgress: number
  waiting: number
  failed: number
  /** Split by whether attempts to their webhook are in progress: at an idle webhook nothing of its own delays them. */
  oldestPendingAge: ByWebhook
  /** Deliveries whose attempt should have begun a minute ago and more. */
  overdue: ByWebhook
  openIncidents: number
}

type ByWebhook = { busy: number; idle: number }

/**
 * Deliveries that are pending or in progress have their `sweep_at` within about five minutes: the lease of the longest
 * attempt and the interval of the sweep. So have all that are overdue.
 */
export const SWEEP_HORIZON = `interval '10 minutes'`

const OVERDUE_AFTER = `interval '1 minute'`

/** CTEs: the deliveries that are pending, in progress or overdue, and which of them are `busy` and `overdue`. */
const KNOWN = `near AS MATERIALIZED (
       SELECT state, webhook_id, created_at, coalesce(next_attempt_at, created_at) AS due_at,
              state = 'in_progress' AND lease_until > now() AS under_way
         FROM delivery d
        WHERE ${UNSTARTED} AND d.sweep_at < now() + ${SWEEP_HORIZON} OR ${STARTED} AND d.sweep_at < now() + ${SWEEP_HORIZON}
     ), busy AS (
       SELECT DISTINCT webhook_id FROM near WHERE under_way
     ), known AS (
       SELECT n.*, b.webhook_id IS NOT NULL AS busy,
              NOT n.under_way AND n.due_at < now() - ${OVERDUE_AFTER} AS overdue
         FROM near n LEFT JOIN busy b USING (webhook_id)
     )`

/**
 * Counts deliveries in progress and waiting. Reads the partial indexes of deliveries that are not final, so that ten
 * million completed deliveries cost no more than ten thousand: a few ms, and about 25 ms per 100,000 waiting or failed.
 */
export async function countBacklog(db: Db): Promise<Backlog> {
  const found = await sql(`WITH ${KNOWN}
     SELECT count(*) FILTER (WHERE state = 'pending')::int AS pending,
            count(*) FILTER (WHERE state = 'in_progress')::int AS "inProgress",
            (SELECT count(*)::int FROM delivery WHERE state = 'waiting') AS waiting,
            (SELECT count(*)::int FROM delivery WHERE state = 'failed') AS failed,
            ${secondsSince(`min(created_at) FILTER (WHERE state = 'pending' AND busy)`)} AS "pendingBusyAge",
            ${secondsSince(`min(created_at) FILTER (WHERE state = 'pending' AND NOT busy)`)} AS "pendingIdleAge",
            count(*) FILTER (WHERE overdue AND busy)::int AS "overdueBusy",
            count(*) FILTER (WHERE overdue AND NOT busy)::int AS "overdueIdle",
            (SELECT count(*)::int FROM incident WHERE closed_at IS NULL) AS "openIncidents"
       FROM known`).first<BacklogColumns>(db)
  if (found === null) throw new Error('a count without a row')
  const { pendingBusyAge, pendingIdleAge, overdueBusy, overdueIdle, ...counts } = found
  return {
    ...counts,
    oldestPendingAge: { busy: pendingBusyAge, idle: pendingIdleAge },
    overdue: { busy: overdueBusy, idle: overdueIdle },
  }
}

type BacklogColumns = Omit<Backlog, 'oldestPendingAge' | 'overdue'> & {
  pendingBusyAge: number
  pendingIdleAge: number
  overdueBusy: number
  overdueIdle: number
}

function secondsSince(instant: string): string {
  return `coalesce(greatest(0, extract(epoch FROM now() - ${instant})), 0)::float8`
}

/** Overdue deliveries by how late they are; `busy` ones wait for an endpoint with attempts in progress. */
export type OverdueByAge = {
  upToFiveMinutes: number
  upToOneHour: number
  longer: number
  /** Null where none is overdue. */
  oldestDueAt: Date | null
  busy: number
}

/** Counts overdue deliveries by age. Those whose webhook has attempts in progress are counted as `busy` only. */
export async function countOverdueByAge(db: Db): Promise<OverdueByAge> {
  const late = (condition: string): string => `count(*) FILTER (WHERE NOT busy AND ${condition})::int`
  const found = await sql(`WITH ${KNOWN}
     SELECT ${late(`due_at >= now() - interval '5 minutes'`)} AS "upToFiveMinutes",
            ${late(`due_at < now() - interval '5 minutes' AND due_at >= now() - interval '1 hour'`)} AS "upToOneHour",
            ${late(`due_at < now() - interval '1 hour'`)} AS longer,
            min(due_at) FILTER (WHERE NOT busy) AS "oldestDueAt",
            count(*) FILTER (WHERE busy)::int AS busy
       FROM known WHERE overdue`).first<OverdueByAge>(db)
  if (found === null) throw new Error('a count without a row')
  return found
}

/**
 * Counts deliveries that wait for their first attempt, and no further than `limit`. Read from the partial indexes of what
 * is not final, like the rest.
 */
export async function countPending(db: Db, limit: number): Promise<number> {
  const near = `state = 'pending' AND sweep_at < now() + ${SWEEP_HORIZON}`
  const found = await sql(
    `SELECT count(*)::int AS pending FROM (
       (SELECT 1 FROM delivery WHERE ${near} AND started_at IS NULL AND attempts = 0 LIMIT :limit)
       UNION ALL
       (SELECT 1 FROM delivery WHERE ${near} AND (started_at IS NOT NULL OR attempts > 0) LIMIT :limit)
     ) AS pending`,
    { limit },
  ).first<{ pending: number }>(db)
  return found?.pending ?? 0
}

/** The same as `countBacklog`, on one core of the server, and given up there after `timeoutMs`. */
export function countBacklogInTime(dataSource: DataSource, timeoutMs: number): Promise<Backlog> {
  return dataSource.transaction(async (manager) => {
    // Not as parameters of the connection: a pooler in front of the server may refuse those.
    await manager.query(`SET LOCAL statement_timeout = ${timeoutMs}`)
    await manager.query('SET LOCAL max_parallel_workers_per_gather = 0')
    return countBacklog(manager)
  })
}

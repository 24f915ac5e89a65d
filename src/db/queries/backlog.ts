// Hand-written: statistics over partial indexes.
import type { DataSource } from 'typeorm'
import { sql, type Db } from '../connection/db.ts'
import { IS_OWED_WORKFLOW, STARTED, UNSTARTED } from './recovery.ts'
import { KNOWN, SWEEP_HORIZON } from './stuck-deliveries.ts'

/** What is not at its end, over all organisations. Ages are in seconds, 0 where there is nothing. */
export type Backlog = {
  pending: number
  inProgress: number
  waiting: number
  failed: number
  /** Split by whether they wait for their endpoint (`busy`), as `stuck-deliveries.ts` defines it. */
  oldestPendingAge: ByWebhook
  /** Deliveries whose attempt should have begun a minute ago and more: at an idle webhook they are stuck. */
  overdue: ByWebhook
  /** Deliveries whose workflow is paused in Temporal: they are not counted as overdue. */
  paused: number
  /** Deliveries that were attempted without a workflow, and to which one is owed. */
  owedWorkflows: number
  oldestOwedAge: number
  openIncidents: number
}

type ByWebhook = { busy: number; idle: number }

/**
 * Counts deliveries in progress and waiting. Reads the partial indexes of deliveries that are not final, so that ten
 * million completed deliveries cost no more than ten thousand: a few ms, and about 25 ms per 100,000 waiting or failed.
 */
export async function countBacklog(db: Db): Promise<Backlog> {
  const { pendingBusyAge, pendingIdleAge, overdueBusy, overdueIdle, ...counts } = await sql(`WITH ${KNOWN}
     SELECT count(*) FILTER (WHERE state = 'pending')::int AS pending,
            count(*) FILTER (WHERE state = 'in_progress')::int AS "inProgress",
            (SELECT count(*)::int FROM delivery WHERE state = 'waiting') AS waiting,
            (SELECT count(*)::int FROM delivery WHERE state = 'failed') AS failed,
            ${secondsSince(`min(created_at) FILTER (WHERE state = 'pending' AND busy)`)} AS "pendingBusyAge",
            ${secondsSince(`min(created_at) FILTER (WHERE state = 'pending' AND NOT busy)`)} AS "pendingIdleAge",
            count(*) FILTER (WHERE overdue AND busy)::int AS "overdueBusy",
            count(*) FILTER (WHERE overdue AND NOT busy)::int AS "overdueIdle",
            count(*) FILTER (WHERE paused_since IS NOT NULL)::int AS paused,
            (SELECT count(*)::int FROM delivery WHERE ${IS_OWED_WORKFLOW}) AS "owedWorkflows",
            (SELECT ${secondsSince('min(completed_at)')} FROM delivery WHERE ${IS_OWED_WORKFLOW}) AS "oldestOwedAge",
            (SELECT count(*)::int FROM incident WHERE closed_at IS NULL) AS "openIncidents"
       FROM known`).one<BacklogColumns>(db)
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

/**
 * Counts deliveries that wait for their first attempt, and no further than `limit`. Read from the partial indexes of what
 * is not final, like the rest.
 */
export async function countPending(db: Db, limit: number): Promise<number> {
  const near = `state = 'pending' AND sweep_at < now() + ${SWEEP_HORIZON}`
  const counted = await sql(
    `SELECT count(*)::int AS pending FROM (
       (SELECT 1 FROM delivery WHERE ${near} AND ${UNSTARTED} LIMIT :limit)
       UNION ALL
       (SELECT 1 FROM delivery WHERE ${near} AND ${STARTED} LIMIT :limit)
     ) AS pending`,
    { limit },
  ).one<{ pending: number }>(db)
  return counted.pending
}

/** The database cancels the count after this. */
const COUNT_TIMEOUT_MS = 2_000

/** The same as `countBacklog`, on one core of the server, and given up there after two seconds. */
export function countBacklogInTime(dataSource: DataSource, timeoutMs = COUNT_TIMEOUT_MS): Promise<Backlog> {
  return dataSource.transaction(async (manager) => {
    // Not as parameters of the connection: a pooler in front of the server may refuse those.
    await manager.query(`SET LOCAL statement_timeout = ${timeoutMs}`)
    await manager.query('SET LOCAL max_parallel_workers_per_gather = 0')
    return countBacklog(manager)
  })
}

// Hand-written: statistics over the partial indexes of what is not final, of one webhook and of all.
import type { DataSource } from 'typeorm'
import { sql, type Db } from '../connection/db.ts'
import { IS_OWED_WORKFLOW, STARTED, UNSTARTED } from './due-deliveries.ts'
import { HAD_SLOW_ATTEMPT, KNOWN, SWEEP_HORIZON } from './stuck-work.ts'

/** What is not at its end, over all organisations. Ages are in seconds, 0 where there is nothing. */
export type Backlog = {
  pending: number
  inProgress: number
  waiting: number
  failed: number
  /** Of those that are not paused in Temporal, split by whether they wait for their endpoint (`busy`, see `stuck-work.ts`). */
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
            ${secondsSince(`min(created_at) FILTER (WHERE state = 'pending' AND busy AND paused_since IS NULL)`)} AS "pendingBusyAge",
            ${secondsSince(`min(created_at) FILTER (WHERE state = 'pending' AND NOT busy AND paused_since IS NULL)`)} AS "pendingIdleAge",
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

/** Deliveries of a webhook that wait for their first attempt; `oldestWaitingForFirstAttemptMs`: null where there is none. */
export type WaitingFirstAttempts = {
  waitingForFirstAttempt: number
  oldestWaitingForFirstAttemptMs: number | null
}

/**
 * SQL for the deliveries of a webhook that wait for their first attempt: a pending one is always near its sweep.
 */
const PENDING = `(
  SELECT id, created_at FROM delivery
   WHERE webhook_id = webhook.id AND ${UNSTARTED} AND sweep_at < now() + ${SWEEP_HORIZON} AND state = 'pending' AND NOT is_test
   UNION ALL
  SELECT id, created_at FROM delivery
   WHERE webhook_id = webhook.id AND ${STARTED} AND sweep_at < now() + ${SWEEP_HORIZON} AND state = 'pending' AND NOT is_test)`

/** SQL for the {@link WaitingFirstAttempts} of a webhook. */
export const WAITING_FIRST_ATTEMPTS = `(
  SELECT count(*)::int AS "waitingForFirstAttempt",
         CASE WHEN count(*) > 0 THEN round(greatest(extract(epoch FROM now() - min(created_at)) * 1000, 0))::float8 END
           AS "oldestWaitingForFirstAttemptMs"
    FROM ${PENDING} pending)`

/** What a delivery that waits for its first attempt waits for. `isEndpointSlow`: a recent attempt took a second or more. */
export type FirstAttemptQueue = { before: number; isEndpointSlow: boolean }

/** A page requests it every second: a longer queue is not counted to its end. */
const MAX_COUNTED = 10_000

/** Counts the deliveries of the webhook that were accepted before this one and wait for their first attempt like it. */
export async function findFirstAttemptQueue(
  db: Db,
  organisationId: string,
  webhookId: string,
  deliveryId: string,
): Promise<FirstAttemptQueue> {
  const found = await sql(
    `SELECT (SELECT count(*)::int FROM (SELECT 1 FROM ${PENDING} pending WHERE id < :deliveryId
                                       LIMIT ${MAX_COUNTED}) counted) AS before,
            ${HAD_SLOW_ATTEMPT} AS "isEndpointSlow"
       FROM webhook WHERE organisation_id = :organisationId AND id = :webhookId`,
    { organisationId, webhookId, deliveryId },
  ).first<FirstAttemptQueue>(db)
  return found ?? { before: 0, isEndpointSlow: false }
}

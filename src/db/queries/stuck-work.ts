// Hand-written: statistics that no entity has.
import { TRIED_FOR, TRY_LOST_AFTER } from './notifications.ts'
import { sql, type Db } from '../connection/db.ts'
import { SLOW_POST_MS } from '../../domain/attempt-outcome.ts'
import { STARTED, UNSTARTED, DUE_AT } from './due-deliveries.ts'

/** Rows of one kind that make no progress: `since` is the oldest instant at which one should have gone on. */
export type StuckRows = { count: number; since: Date; example: string }

/** The workflows need seconds, and the sweeper repeats a signal after a minute. */
const NO_PROGRESS_AFTER = `interval '5 minutes'`

/** A sweeper takes what is due within a second or two, so a minute means that none does. */
const UNSWEPT_AFTER = `interval '1 minute'`

/** A notification is settled by the next evaluation of its incident, at most 17 minutes later. */
const SETTLED_WITHIN = `interval '20 minutes'`

/** Counts `rows` by their columns `id` and `since`; null where there is none. */
function countStuckRows(db: Db, rows: string): Promise<StuckRows | null> {
  return sql(
    `SELECT count(*)::int AS count, min(since) AS since, (array_agg(id::text ORDER BY since))[1] AS example
       FROM (${rows}) stuck HAVING count(*) > 0`,
  ).first(db)
}

/** Counts incidents that their workflow should have evaluated: it was not signalled, or does not run. */
export function countOverdueIncidents(db: Db): Promise<StuckRows | null> {
  return countStuckRows(
    db,
    `SELECT id, sweep_at AS since FROM incident WHERE sweep_at < now() - ${NO_PROGRESS_AFTER}`,
  )
}

/** Counts notifications whose try was lost, or that are tried no more, and that no evaluation has settled; by incident. */
export function countStuckNotifications(db: Db): Promise<StuckRows | null> {
  return countStuckRows(
    db,
    `SELECT incident_id AS id, claimed_at AS since FROM notification
      WHERE state = 'sending' AND claimed_at < now() - ${TRY_LOST_AFTER} - ${SETTLED_WITHIN}
     UNION ALL
     SELECT incident_id, created_at FROM notification
      WHERE state = 'pending' AND created_at < now() - ${TRIED_FOR} - ${SETTLED_WITHIN}`,
  )
}

/** Counts running retry jobs that no sweeper examines. */
export function countUnsweptJobs(db: Db): Promise<StuckRows | null> {
  return countStuckRows(
    db,
    `SELECT id, coalesce(sweep_at, created_at) AS since FROM retry_job
      WHERE state = 'running' AND (sweep_at IS NULL OR sweep_at < now() - ${UNSWEPT_AFTER})`,
  )
}

/**
 * Counts running retry jobs that take no step, whatever their endpoints do: the first one with a webhook that is enabled
 * was never taken, or an attempt that they requested has ended and is not counted.
 */
export function countJobsWithoutProgress(db: Db): Promise<StuckRows | null> {
  return countStuckRows(
    db,
    `SELECT retry_job.id, min(coalesce(ended.at, retry_job.created_at)) AS since
       FROM retry_job
       JOIN retry_job_webhook progress ON progress.job_id = retry_job.id AND NOT progress.finished
       JOIN webhook ON webhook.id = progress.webhook_id
       LEFT JOIN LATERAL (
         SELECT min(attempt.started_at + attempt.duration_ms * interval '1 ms') AS at
           FROM unnest(progress.under_way, progress.under_way_numbers) AS requested (delivery_id, number)
           JOIN attempt USING (delivery_id, number)
       ) ended ON true
      WHERE retry_job.state = 'running' AND retry_job.created_at < now() - ${NO_PROGRESS_AFTER}
        AND (webhook.enabled AND webhook.updated_at < now() - ${NO_PROGRESS_AFTER}
             AND progress.cursor IS NULL AND progress.event_cursor = 0 AND progress.under_way = '{}'
             OR ended.at < now() - ${NO_PROGRESS_AFTER})
      GROUP BY retry_job.id`,
  )
}

/** Counts erasures that no sweeper examines. */
export function countUnsweptErasures(db: Db): Promise<StuckRows | null> {
  return countStuckRows(
    db,
    `SELECT organisation_id AS id, sweep_at AS since FROM organisation_erasure
      WHERE sweep_at < now() - ${UNSWEPT_AFTER}`,
  )
}

/** Returns the ids of up to `limit` running retry jobs, the oldest first. */
export function listRunningJobs(db: Db, limit: number): Promise<string[]> {
  return sql(
    `SELECT id FROM retry_job WHERE state = 'running' AND created_at < now() - ${UNSWEPT_AFTER}
      ORDER BY created_at LIMIT :limit`,
    { limit },
  ).ids(db)
}

/** Returns the ids of up to `limit` organisations that are being erased, the oldest request first. */
export function listErasures(db: Db, limit: number): Promise<string[]> {
  return sql(
    `SELECT organisation_id AS id FROM organisation_erasure WHERE requested_at < now() - ${UNSWEPT_AFTER}
      ORDER BY requested_at LIMIT :limit`,
    { limit },
  ).ids(db)
}

/**
 * Deliveries that are pending or in progress have their `sweep_at` within about five minutes: the lease of the longest
 * attempt and the interval of the sweep. So have all that are overdue.
 */
export const SWEEP_HORIZON = `interval '10 minutes'`

const OVERDUE_AFTER = `interval '1 minute'`

/** Attempts to an endpoint that hangs follow each other more closely than this, also where hundreds hang. */
const SLOW_FOR = `interval '5 minutes'`

/** SQL for whether a webhook had such an attempt. With LIMIT, so that it is read from the index of each outcome. */
export const HAD_SLOW_ATTEMPT = `EXISTS (
  (SELECT 1 FROM attempt WHERE webhook_id = webhook.id AND outcome = 'failed'
      AND started_at > now() - ${SLOW_FOR} AND duration_ms >= ${SLOW_POST_MS} LIMIT 1)
   UNION ALL
  (SELECT 1 FROM attempt WHERE webhook_id = webhook.id AND outcome = 'succeeded'
      AND started_at > now() - ${SLOW_FOR} AND duration_ms >= ${SLOW_POST_MS} LIMIT 1))`

/**
 * CTEs that define which deliveries are stuck, for the metrics, the alerts and `posthorn doctor`. `known`: those that are
 * pending, in progress or overdue. `overdue`: due a minute ago or more, no attempt is in progress, and the workflow is not
 * paused. `busy`: they wait for their endpoint, to which an attempt is in progress, or took longer than a second in the
 * last five minutes. What is overdue and not busy is stuck.
 */
export const KNOWN = `near AS MATERIALIZED (
       SELECT id, state, webhook_id, attempts, created_at, sweep_at, paused_since,
              coalesce(next_attempt_at, created_at) AS due_at, workflow_started_at IS NULL AS unstarted,
              state = 'in_progress' AND lease_until > now() AS under_way
         FROM delivery
        WHERE ${UNSTARTED} AND sweep_at < now() + ${SWEEP_HORIZON} OR ${STARTED} AND sweep_at < now() + ${SWEEP_HORIZON}
     ), late AS (
       SELECT DISTINCT webhook_id AS id FROM near
        WHERE NOT under_way AND paused_since IS NULL AND due_at < now() - ${OVERDUE_AFTER}
     ), busy AS (
       SELECT webhook_id FROM near WHERE under_way
       UNION SELECT webhook.id FROM late AS webhook WHERE ${HAD_SLOW_ATTEMPT}
     ), known AS (
       SELECT near.*, busy.webhook_id IS NOT NULL AS busy,
              NOT under_way AND paused_since IS NULL AND due_at < now() - ${OVERDUE_AFTER} AS overdue
         FROM near LEFT JOIN busy USING (webhook_id)
     )`

/** Overdue deliveries: those that are stuck by how late they are, and those that wait for their endpoints. */
type OverdueDeliveries = {
  upToFiveMinutes: number
  upToOneHour: number
  longer: number
  /** Null where none is stuck. */
  oldestDueAt: Date | null
  busyFirstAttempts: number
  /** Null where no first attempt waits for its endpoint. */
  oldestBusyFirstAt: Date | null
  busyRetries: number
}

export function countOverdue(db: Db): Promise<OverdueDeliveries> {
  const late = (condition: string): string => `count(*) FILTER (WHERE NOT busy AND ${condition})::int`
  return sql(`WITH ${KNOWN}
     SELECT ${late(`due_at >= now() - interval '5 minutes'`)} AS "upToFiveMinutes",
            ${late(`due_at < now() - interval '5 minutes' AND due_at >= now() - interval '1 hour'`)} AS "upToOneHour",
            ${late(`due_at < now() - interval '1 hour'`)} AS longer,
            min(due_at) FILTER (WHERE NOT busy) AS "oldestDueAt",
            count(*) FILTER (WHERE busy AND attempts = 0)::int AS "busyFirstAttempts",
            min(due_at) FILTER (WHERE busy AND attempts = 0) AS "oldestBusyFirstAt",
            count(*) FILTER (WHERE busy AND attempts > 0)::int AS "busyRetries"
       FROM known WHERE overdue`).one(db)
}

/**
 * Why a delivery is stuck. `unstarted`: neither a workflow nor an attempt was started, and its lease is over.
 * `attempt_lost`: its attempt was in progress, and the lease of that is over. `unswept`: the sweeper should have
 * examined it.
 */
export type StuckReason = 'unstarted' | 'attempt_lost' | 'unswept'

type StuckDeliveries = { reason: StuckReason; count: number; oldestDueAt: Date; example: string }

/** Counts stuck deliveries that the sweeper should have recovered, by reason. */
export function countStuck(db: Db): Promise<StuckDeliveries[]> {
  return sql(
    `WITH ${KNOWN}, stuck AS (
       SELECT id, due_at,
              CASE WHEN state = 'in_progress' THEN 'attempt_lost'
                   WHEN unstarted THEN 'unstarted'
                   ELSE 'unswept' END AS reason
         FROM known WHERE overdue AND NOT busy AND sweep_at < now() - ${UNSWEPT_AFTER}
     )
     SELECT reason, count(*)::int AS count, min(due_at) AS "oldestDueAt",
            (array_agg(id ORDER BY due_at))[1] AS example
       FROM stuck GROUP BY reason ORDER BY reason`,
  ).rows(db)
}

/** Returns the ids of up to `limit` stuck deliveries that have had a workflow or an attempt, the oldest first. */
export function listStuckStarted(db: Db, limit: number): Promise<string[]> {
  return sql(
    `WITH ${KNOWN}
     SELECT id FROM known WHERE overdue AND NOT busy AND NOT unstarted ORDER BY due_at LIMIT :limit`,
    { limit },
  ).ids(db)
}

/** The deliveries whose workflow is paused, as the sweeper saw it. */
type PausedDeliveries = { count: number; oldestDueAt: Date; since: Date; example: string }

/** Counts them; null where there are none. */
export async function findPaused(db: Db): Promise<PausedDeliveries | null> {
  return sql(
    `SELECT count(*)::int AS count, min(${DUE_AT}) AS "oldestDueAt", min(paused_since) AS since,
            (array_agg(id ORDER BY ${DUE_AT}))[1] AS example
       FROM delivery
      WHERE ${STARTED} AND sweep_at < now() + ${SWEEP_HORIZON} AND paused_since IS NOT NULL
     HAVING count(*) > 0`,
  ).first(db)
}

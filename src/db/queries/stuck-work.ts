// Hand-written: statistics that no entity has.
import { TRIED_FOR, TRY_LOST_AFTER } from './notifications.ts'
import { sql, type Db } from '../connection/db.ts'

/** Rows of one kind that make no progress: `since` is the oldest instant at which one should have gone on. */
export type StuckRows = { count: number; since: Date; example: string }

/** The workflows need seconds, and the sweeper repeats a signal after a minute. */
const NO_PROGRESS_AFTER = `interval '5 minutes'`

/** A sweeper takes what is due within a second or two, so a minute means that none does. */
export const UNSWEPT_AFTER = `interval '1 minute'`

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
 * Counts running retry jobs that take no step, whatever their endpoints do: the first one with a webhook was never
 * taken, or an attempt that they requested has ended and is not counted.
 */
export function countJobsWithoutProgress(db: Db): Promise<StuckRows | null> {
  return countStuckRows(
    db,
    `SELECT retry_job.id, min(coalesce(ended.at, retry_job.created_at)) AS since
       FROM retry_job
       JOIN retry_job_webhook progress ON progress.job_id = retry_job.id AND NOT progress.finished
       LEFT JOIN LATERAL (
         SELECT min(attempt.started_at + attempt.duration_ms * interval '1 ms') AS at
           FROM unnest(progress.under_way, progress.under_way_numbers) AS requested (delivery_id, number)
           JOIN attempt USING (delivery_id, number)
       ) ended ON true
      WHERE retry_job.state = 'running' AND retry_job.created_at < now() - ${NO_PROGRESS_AFTER}
        AND (progress.cursor IS NULL AND progress.under_way = '{}' OR ended.at < now() - ${NO_PROGRESS_AFTER})
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

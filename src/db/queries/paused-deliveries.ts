// Hand-written: statistics over a partial index.
import { sql, type Db } from '../connection/db.ts'
import { DUE_AT, STARTED } from './recovery.ts'
import { SWEEP_HORIZON } from './stuck-deliveries.ts'

/** The deliveries whose workflow is paused, as the sweeper saw it. */
export type PausedDeliveries = { count: number; oldestDueAt: Date; since: Date; example: string }

/** Counts them; null where there are none. */
export async function findPaused(db: Db): Promise<PausedDeliveries | null> {
  return sql(
    `SELECT count(*)::int AS count, min(${DUE_AT}) AS "oldestDueAt", min(d.paused_since) AS since,
            (array_agg(d.id ORDER BY ${DUE_AT}))[1] AS example
       FROM delivery d
      WHERE ${STARTED} AND d.sweep_at < now() + ${SWEEP_HORIZON} AND d.paused_since IS NOT NULL
     HAVING count(*) > 0`,
  ).first(db)
}

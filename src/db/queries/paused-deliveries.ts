// Hand-written: many rows are changed by their state and PostgreSQL's clock, and counted in a partial index.
import { sql, type Db } from '../db.ts'
import { SWEEP_HORIZON } from './stuck-deliveries.ts'
import { DUE_AT, LATER, STARTED } from './recovery.ts'

/** A delivery whose workflow is paused in Temporal. `attempts` are those recorded when it was examined. */
export type PausedDelivery = { deliveryId: string; attempts: number; since: Date }

/**
 * Notes that the workflows of these deliveries are paused, unless they went on meanwhile, and sweeps them again like
 * those that are only late.
 */
export async function notePaused(
  db: Db,
  paused: readonly PausedDelivery[],
  delay: { minMs: number; maxMs: number },
): Promise<void> {
  await sql(
    `UPDATE delivery d SET paused_since = paused.since, sweep_at = ${LATER}
       FROM unnest(:deliveryIds::uuid[], :attempts::int[], :since::timestamptz[]) AS paused (id, attempts, since)
      WHERE d.id = paused.id AND d.attempts = paused.attempts AND ${STARTED}
        AND NOT (d.state = 'in_progress' AND d.lease_until > now())`,
    {
      deliveryIds: paused.map(({ deliveryId }) => deliveryId),
      attempts: paused.map(({ attempts }) => attempts),
      since: paused.map(({ since }) => since),
      ...delay,
    },
  ).rows(db)
}

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

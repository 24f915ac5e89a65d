// Hand-written: statistics over partial indexes.
import { sql, type Db } from '../db.ts'
import { SWEEP_HORIZON } from './backlog.ts'
import { DUE_AT, STARTED, UNSTARTED } from './recovery.ts'

/**
 * Why a delivery is stuck. `unstarted`: neither a workflow nor an attempt was started, and its lease is over.
 * `attempt_lost`: its attempt was in progress, and the lease of that is over. `unswept`: the sweeper should have
 * examined it. `unrecoverable`: the sweeper never examines it.
 */
export type StuckReason = 'unstarted' | 'attempt_lost' | 'unswept' | 'unrecoverable'

export type StuckDeliveries = { reason: StuckReason; count: number; oldestDueAt: Date; example: string }

/** A sweeper takes what is due within a second or two, so a minute means that none does. */
const STUCK_AFTER = `interval '1 minute'`

/** Counts the deliveries that are not final and that the sweeper should have recovered a minute ago, by reason. */
export function countStuck(db: Db): Promise<StuckDeliveries[]> {
  const isUnswept = `(d.sweep_at IS NULL OR d.sweep_at < now() - ${STUCK_AFTER})`
  return sql(
    `WITH stuck AS MATERIALIZED (
       SELECT d.id, ${DUE_AT} AS due_at,
              CASE WHEN d.sweep_at IS NULL THEN 'unrecoverable'
                   WHEN d.state = 'in_progress' THEN 'attempt_lost'
                   WHEN ${UNSTARTED} THEN 'unstarted'
                   ELSE 'unswept' END AS reason
         FROM delivery d WHERE ${UNSTARTED} AND ${isUnswept} OR ${STARTED} AND ${isUnswept}
     )
     SELECT reason, count(*)::int AS count, min(due_at) AS "oldestDueAt",
            (array_agg(id ORDER BY due_at))[1] AS example
       FROM stuck GROUP BY reason ORDER BY reason`,
  ).rows(db)
}

/** Returns the ids of up to `limit` deliveries that have had a workflow or an attempt and are overdue, the oldest first. */
export async function listOverdueStarted(db: Db, limit: number): Promise<string[]> {
  const found = await sql(
    `SELECT d.id FROM delivery d
      WHERE ${STARTED} AND d.sweep_at < now() + ${SWEEP_HORIZON} AND ${DUE_AT} < now() - ${STUCK_AFTER}
        AND NOT (d.state = 'in_progress' AND d.lease_until > now())
      ORDER BY ${DUE_AT} LIMIT :limit`,
    { limit },
  ).rows<{ id: string }>(db)
  return found.map(({ id }) => id)
}

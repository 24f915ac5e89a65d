// Hand-written: leases of many rows change in one statement, by their state and PostgreSQL's clock.
import type { DeliveryLabel } from '../../domain/workflow-labels.ts'
import { sql, type Db } from '../db.ts'

/** Renews this process's leases of deliveries that still wait for their first attempt; returns those it still owns. */
export async function renewLeases(
  db: Db,
  deliveryIds: string[],
  lease: { owner: string; leaseMs: number },
): Promise<string[]> {
  const renewed = await sql(
    `UPDATE delivery SET lease_until = now() + :leaseMs * interval '1 ms', sweep_at = now() + :leaseMs * interval '1 ms'
      WHERE id = ANY(:deliveryIds::uuid[]) AND owner = :owner AND state = 'pending' AND started_at IS NULL
      RETURNING id`,
    { deliveryIds, owner: lease.owner, leaseMs: lease.leaseMs },
  ).rows<{ id: string }>(db)
  return renewed.map(({ id }) => id)
}

/**
 * Notes that the workflows of these deliveries run: of such as wait for their first attempt, or for their second after
 * the first was made inline, or are completed. Rows that already went on need no note.
 */
export async function markStarted(db: Db, deliveryIds: string[], sweepAfterMs: number): Promise<void> {
  await sql(
    `UPDATE delivery
        SET started_at = now(),
            owner = CASE WHEN state <> 'pending' THEN owner END,
            lease_until = CASE WHEN state <> 'pending' THEN lease_until END,
            sweep_at = CASE state WHEN 'pending' THEN now() + :sweepAfterMs * interval '1 ms'
                                  WHEN 'waiting' THEN next_attempt_at + :sweepAfterMs * interval '1 ms'
                                  WHEN 'completed' THEN NULL
                                  ELSE sweep_at END
      WHERE id = ANY(:deliveryIds::uuid[]) AND started_at IS NULL`,
    { deliveryIds, sweepAfterMs },
  ).rows(db)
}

/** How the first attempts of these deliveries stand: `open`, not made yet; `completed`; or made otherwise, or not to be made. */
export async function findFirstAttempts(
  db: Db,
  deliveryIds: string[],
): Promise<Map<string, 'open' | 'completed' | 'other'>> {
  const found = await sql(
    `SELECT id, CASE WHEN attempts = 0 AND state IN ('pending', 'in_progress') THEN 'open'
                     WHEN state = 'completed' THEN 'completed' ELSE 'other' END AS state
       FROM delivery WHERE id = ANY(:deliveryIds::uuid[])`,
    { deliveryIds },
  ).rows<{ id: string; state: 'open' | 'completed' | 'other' }>(db)
  return new Map(found.map(({ id, state }) => [id, state]))
}

/**
 * Marks slow inline attempts, which run under the lease of their commit, as in progress and renews their leases: no
 * other process posts for them until `leaseMs` are over. Then the sweeper recovers them, since they have no workflow.
 */
export async function markInFlight(
  db: Db,
  deliveryIds: string[],
  lease: { owner: string; leaseMs: number },
): Promise<void> {
  await sql(
    `UPDATE delivery
        SET state = 'in_progress', claims = claims + 1, lease_until = now() + :leaseMs * interval '1 ms',
            sweep_at = now() + :leaseMs * interval '1 ms'
      WHERE id = ANY(:deliveryIds::uuid[]) AND owner = :owner AND state = 'pending'`,
    { deliveryIds, owner: lease.owner, leaseMs: lease.leaseMs },
  ).rows(db)
}

/** A delivery that was completed inline, and is still to have a workflow that shows it. */
export type CompletedDelivery = DeliveryLabel & { attempts: number }

/**
 * Takes up to `limit` completed deliveries that are still to have a workflow for `leaseMs`, those first that have waited
 * longest.
 */
export async function takeForBackfill(
  db: Db,
  options: { leaseMs: number; limit: number },
): Promise<CompletedDelivery[]> {
  return sql(
    `WITH due AS (
       SELECT id FROM delivery WHERE ${BACKFILL} AND sweep_at < now()
        ORDER BY sweep_at LIMIT :limit FOR UPDATE SKIP LOCKED
     ), taken AS (
       UPDATE delivery d SET sweep_at = now() + :leaseMs * interval '1 ms' FROM due WHERE d.id = due.id RETURNING d.*
     )
     SELECT ${LABEL}, t.attempts
       FROM taken t JOIN event e ON e.id = t.event_id JOIN webhook w ON w.id = t.webhook_id`,
    { leaseMs: options.leaseMs, limit: options.limit },
  ).rows(db)
}

/** Leaves up to `limit` completed deliveries without a workflow that have waited for `olderThanMs`; returns how many. */
export async function forgetBackfill(
  db: Db,
  options: { olderThanMs: number; limit: number },
): Promise<number> {
  const forgotten = await sql(
    `UPDATE delivery SET sweep_at = NULL WHERE id = ANY(ARRAY(
       SELECT id FROM delivery WHERE ${BACKFILL} AND sweep_at < now() - :olderThanMs * interval '1 ms'
        ORDER BY sweep_at LIMIT :limit FOR UPDATE SKIP LOCKED
     )) RETURNING 1`,
    { olderThanMs: options.olderThanMs, limit: options.limit },
  ).rows(db)
  return forgotten.length
}

/** Completed deliveries that are still to have a workflow (`delivery_backfill_idx`). */
const BACKFILL = `state = 'completed' AND started_at IS NULL AND sweep_at IS NOT NULL`

export const LABEL = `t.id AS "deliveryId", t.organisation_id AS "organisationId", t.webhook_id AS "webhookId",
            e.key AS "eventKey", w.url`

/**
 * Gives deliveries back that this process could not start; the sweep takes them up after `delayMs`, or up to half as long
 * again: what was given back at one instant does not come back at one.
 */
export async function releaseDeliveries(
  db: Db,
  owner: string,
  deliveryIds: string[],
  delayMs: number,
): Promise<void> {
  await sql(
    `UPDATE delivery SET owner = NULL, lease_until = NULL,
            sweep_at = now() + :delayMs * (1 + random() / 2) * interval '1 ms'
      WHERE id = ANY(:deliveryIds::uuid[]) AND owner = :owner AND state = 'pending' AND started_at IS NULL`,
    { owner, deliveryIds, delayMs },
  ).rows(db)
}

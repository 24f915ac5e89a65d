import type { DeliveryLabel } from '../../domain/workflow-labels.ts'
import { rows, type Db } from '../db.ts'

/** Prolongs this process's hold on deliveries that still wait to be begun with; returns those it still holds. */
export async function renewLeases(
  db: Db,
  deliveryIds: string[],
  lease: { owner: string; leaseMs: number },
): Promise<string[]> {
  const renewed = await rows<{ id: string }>(
    db,
    `UPDATE delivery SET lease_until = now() + $3 * interval '1 ms', sweep_at = now() + $3 * interval '1 ms'
      WHERE id = ANY($1::uuid[]) AND owner = $2 AND state = 'pending' AND started_at IS NULL
      RETURNING id`,
    [deliveryIds, lease.owner, lease.leaseMs],
  )
  return renewed.map(({ id }) => id)
}

/**
 * Notes that the workflows of these deliveries run: of such as wait for their first attempt, or for their second after
 * the first was made beside the engine, or are completed. Rows that already went on need no note.
 */
export async function markStarted(db: Db, deliveryIds: string[], sweepAfterMs: number): Promise<void> {
  await rows(
    db,
    `UPDATE delivery
        SET started_at = now(),
            owner = CASE WHEN state <> 'pending' THEN owner END,
            lease_until = CASE WHEN state <> 'pending' THEN lease_until END,
            sweep_at = CASE state WHEN 'pending' THEN now() + $2 * interval '1 ms'
                                  WHEN 'waiting' THEN next_attempt_at + $2 * interval '1 ms'
                                  WHEN 'completed' THEN NULL
                                  ELSE sweep_at END
      WHERE id = ANY($1::uuid[]) AND started_at IS NULL`,
    [deliveryIds, sweepAfterMs],
  )
}

/** How the first attempts of these deliveries stand: `open`, not made yet; `completed`; or made otherwise, or not to be made. */
export async function findFirstAttempts(
  db: Db,
  deliveryIds: string[],
): Promise<Map<string, 'open' | 'completed' | 'other'>> {
  const found = await rows<{ id: string; state: 'open' | 'completed' | 'other' }>(
    db,
    `SELECT id, CASE WHEN attempts = 0 AND state IN ('pending', 'in_progress') THEN 'open'
                     WHEN state = 'completed' THEN 'completed' ELSE 'other' END AS state
       FROM delivery WHERE id = ANY($1::uuid[])`,
    [deliveryIds],
  )
  return new Map(found.map(({ id, state }) => [id, state]))
}

/**
 * Notes that first attempts, which are made under the lease of their commit, take their time: their rows say so from
 * now on, and nobody else posts for them until `leaseMs` are over. Then the sweep does: they have no workflow.
 */
export async function noteUnderWay(
  db: Db,
  deliveryIds: string[],
  hold: { owner: string; leaseMs: number },
): Promise<void> {
  await rows(
    db,
    `UPDATE delivery
        SET state = 'in_progress', claims = claims + 1, lease_until = now() + $3 * interval '1 ms',
            sweep_at = now() + $3 * interval '1 ms'
      WHERE id = ANY($1::uuid[]) AND owner = $2 AND state = 'pending'`,
    [deliveryIds, hold.owner, hold.leaseMs],
  )
}

/** A delivery that was completed beside the engine, and is still to have a workflow that shows it. */
export type CompletedDelivery = DeliveryLabel & { attempts: number }

/**
 * Takes up to `limit` completed deliveries that are still to have a workflow for `leaseMs`, those first that have waited
 * longest.
 */
export async function takeForBackfill(
  db: Db,
  options: { leaseMs: number; limit: number },
): Promise<CompletedDelivery[]> {
  return rows(
    db,
    `WITH due AS (
       SELECT id FROM delivery WHERE ${BACKFILL} AND sweep_at < now()
        ORDER BY sweep_at LIMIT $2 FOR UPDATE SKIP LOCKED
     ), taken AS (
       UPDATE delivery d SET sweep_at = now() + $1 * interval '1 ms' FROM due WHERE d.id = due.id RETURNING d.*
     )
     SELECT ${LABEL}, t.attempts
       FROM taken t JOIN event e ON e.id = t.event_id JOIN webhook w ON w.id = t.webhook_id`,
    [options.leaseMs, options.limit],
  )
}

/** Leaves up to `limit` completed deliveries without a workflow that have waited for `olderThanMs`; returns how many. */
export async function forgetBackfill(
  db: Db,
  options: { olderThanMs: number; limit: number },
): Promise<number> {
  const forgotten = await rows(
    db,
    `UPDATE delivery SET sweep_at = NULL WHERE id = ANY(ARRAY(
       SELECT id FROM delivery WHERE ${BACKFILL} AND sweep_at < now() - $1 * interval '1 ms'
        ORDER BY sweep_at LIMIT $2 FOR UPDATE SKIP LOCKED
     )) RETURNING 1`,
    [options.olderThanMs, options.limit],
  )
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
  await rows(
    db,
    `UPDATE delivery SET owner = NULL, lease_until = NULL,
            sweep_at = now() + $3 * (1 + random() / 2) * interval '1 ms'
      WHERE id = ANY($2::uuid[]) AND owner = $1 AND state = 'pending' AND started_at IS NULL`,
    [owner, deliveryIds, delayMs],
  )
}

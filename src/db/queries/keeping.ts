import { rows, type Db } from '../db.ts'
import type { DeliveryToStart } from './events.ts'

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

/** Of these deliveries, those whose first attempt is still to come or under way. */
export async function findUnattempted(db: Db, deliveryIds: string[]): Promise<string[]> {
  const found = await rows<{ id: string }>(
    db,
    `SELECT id FROM delivery WHERE id = ANY($1::uuid[]) AND attempts = 0 AND state IN ('pending', 'in_progress')`,
    [deliveryIds],
  )
  return found.map(({ id }) => id)
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

type DeliveryLabel = Omit<DeliveryToStart, 'troubled' | 'readAtMs' | 'fresh'>

/**
 * Takes up to `limit` completed deliveries that are still to have a workflow, the oldest first, for `leaseMs`. Those
 * whose end is longer ago than `forgetAfterMs` get none any more.
 */
export async function takeToFollow(
  db: Db,
  options: { leaseMs: number; forgetAfterMs: number; limit: number },
): Promise<CompletedDelivery[]> {
  return rows(
    db,
    `WITH due AS (
       SELECT id FROM delivery WHERE state = 'completed' AND started_at IS NULL AND sweep_at IS NOT NULL AND sweep_at < now()
        ORDER BY sweep_at LIMIT $3 FOR UPDATE SKIP LOCKED
     ), taken AS (
       UPDATE delivery d
          SET sweep_at = CASE WHEN d.completed_at > now() - $2 * interval '1 ms' THEN now() + $1 * interval '1 ms' END
         FROM due WHERE d.id = due.id
       RETURNING d.*
     )
     SELECT ${LABEL}, t.attempts
       FROM taken t JOIN event e ON e.id = t.event_id JOIN webhook w ON w.id = t.webhook_id
      WHERE t.sweep_at IS NOT NULL`,
    [options.leaseMs, options.forgetAfterMs, options.limit],
  )
}

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

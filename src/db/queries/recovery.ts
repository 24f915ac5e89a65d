// Hand-written: rows are chosen and taken in one statement, which passes over those that another process takes.
import { sql, type Db } from '../db.ts'
import { HAS_OPEN_INCIDENT, type DeliveryToStart } from './events.ts'
import { LABEL } from './leases.ts'

const NOT_FINAL = `d.state IN ('pending', 'in_progress', 'waiting')`

/** Deliveries `d` that have had neither a workflow nor an attempt (`delivery_unstarted_idx`). */
export const UNSTARTED = `(${NOT_FINAL} AND d.started_at IS NULL AND d.attempts = 0)`

/** All other deliveries `d` that are not final (`delivery_started_idx`). */
export const STARTED = `(${NOT_FINAL} AND (d.started_at IS NOT NULL OR d.attempts > 0))`

/** When the next attempt of delivery `d` should have begun. */
export const DUE_AT = `coalesce(d.next_attempt_at, d.started_at, d.created_at)`

/** Of a webhook at least so many, if the others leave room; and at most so many while it has an open incident. */
const MIN_PER_WEBHOOK = 20

/** Overdue deliveries, of all webhooks, among which the next ones are chosen. */
const OVERDUE_WINDOW = 2_000

/** The place of a delivery among those of its webhook counts no more than this in `sweepEverything`. */
const MAX_SPREAD_MS = 5_000

/** Of webhook `hook`. */
const OPEN_INCIDENT = `SELECT 1 FROM incident i WHERE i.webhook_id = hook.id AND i.closed_at IS NULL`

/**
 * Takes up to `limit` deliveries that are not begun and whose lease is over, for this process: round
 * robin over webhooks, of each the longest overdue first. `rooms` limits how many of a webhook are taken.
 * `onlyHealthy`: of webhooks without an open incident.
 * One whose process was lost in an inline attempt is `pending` again.
 */
export async function takeUnstarted(
  db: Db,
  options: {
    owner: string
    leaseMs: number
    limit: number
    onlyHealthy: boolean
    rooms: readonly { webhookId: string; room: number }[]
  },
): Promise<DeliveryToStart[]> {
  const readAtMs = performance.now()
  const taken = await sql(
    `WITH RECURSIVE hook AS (
       (SELECT d.webhook_id AS id FROM delivery d WHERE ${UNSTARTED} ORDER BY d.webhook_id LIMIT 1)
       UNION ALL
       SELECT (SELECT d.webhook_id FROM delivery d WHERE ${UNSTARTED} AND d.webhook_id > hook.id
                ORDER BY d.webhook_id LIMIT 1)
         FROM hook WHERE hook.id IS NOT NULL
     ), overdue AS (
       SELECT oldest.id, oldest.sweep_at, row_number() OVER (PARTITION BY hook.id ORDER BY oldest.sweep_at) AS place
         FROM hook CROSS JOIN LATERAL (
           SELECT d.id, d.sweep_at FROM delivery d
            WHERE ${UNSTARTED} AND d.webhook_id = hook.id AND d.sweep_at < now()
            ORDER BY d.sweep_at
            LIMIT coalesce((SELECT given.room FROM unnest(:webhookIds::uuid[], :rooms::int[]) AS given (id, room) WHERE given.id = hook.id),
                           CASE WHEN EXISTS (${OPEN_INCIDENT}) THEN ${MIN_PER_WEBHOOK}
                                ELSE greatest(${MIN_PER_WEBHOOK}, :limit / (SELECT greatest(1, count(id)) FROM hook)) END)
         ) oldest
        WHERE NOT :onlyHealthy OR NOT EXISTS (${OPEN_INCIDENT})
     ), chosen AS (
       SELECT id FROM overdue ORDER BY place, sweep_at LIMIT :limit
     ), due AS (
       SELECT d.id FROM delivery d JOIN chosen USING (id) WHERE ${UNSTARTED} AND d.sweep_at < now()
          FOR UPDATE OF d SKIP LOCKED
     ), taken AS (
       UPDATE delivery d
          SET sweep_at = now() + :leaseMs * interval '1 ms', lease_until = now() + :leaseMs * interval '1 ms', owner = :owner::uuid,
              state = CASE WHEN d.state = 'in_progress' AND d.lease_until < now() THEN 'pending' ELSE d.state END
         FROM due WHERE d.id = due.id
       RETURNING d.*
     )
     SELECT ${LABEL}, ${HAS_OPEN_INCIDENT}
       FROM taken t JOIN event e ON e.id = t.event_id JOIN webhook w ON w.id = t.webhook_id`,
    {
      owner: options.owner,
      leaseMs: options.leaseMs,
      limit: options.limit,
      onlyHealthy: options.onlyHealthy,
      webhookIds: options.rooms.map(({ webhookId }) => webhookId),
      rooms: options.rooms.map(({ room }) => room),
    },
  ).rows<Omit<DeliveryToStart, 'readAtMs' | 'fresh'>>(db)
  return taken.map((delivery) => ({ ...delivery, readAtMs, fresh: null }))
}

/** A delivery whose attempt is overdue, though it has a workflow, or is to have one from its second attempt on. */
export type OverdueDelivery = Omit<DeliveryToStart, 'hasOpenIncident' | 'readAtMs' | 'fresh'> & {
  attempts: number
  nextAttemptAt: Date | null
  /** A user requested the next attempt at once, and the workflow may not have been signalled. */
  retryRequested: boolean
  /** Since when its workflow is paused in Temporal, if that was seen before. */
  pausedSince: Date | null
}

/** Takes up to `limit` overdue deliveries for `holdMs`: round robin over webhooks, of each the longest overdue first. */
export function takeOverdue(db: Db, options: { holdMs: number; limit: number }): Promise<OverdueDelivery[]> {
  return sql(
    `WITH overdue AS (
       SELECT d.id, d.webhook_id, d.sweep_at FROM delivery d WHERE ${STARTED} AND d.sweep_at < now()
        ORDER BY d.sweep_at LIMIT ${OVERDUE_WINDOW}
     ), chosen AS (
       SELECT id FROM (SELECT id, sweep_at, row_number() OVER (PARTITION BY webhook_id ORDER BY sweep_at) AS place
                         FROM overdue) placed
        ORDER BY place, sweep_at LIMIT :limit
     ), due AS (
       SELECT d.id FROM delivery d JOIN chosen USING (id) WHERE ${STARTED} AND d.sweep_at < now()
          FOR UPDATE OF d SKIP LOCKED
     ), taken AS (
       UPDATE delivery d SET sweep_at = now() + :holdMs * interval '1 ms' FROM due WHERE d.id = due.id RETURNING d.*
     )
     SELECT ${LABEL}, t.attempts, t.next_attempt_at AS "nextAttemptAt", t.retry_requested AS "retryRequested",
            t.paused_since AS "pausedSince"
       FROM taken t JOIN event e ON e.id = t.event_id JOIN webhook w ON w.id = t.webhook_id`,
    { holdMs: options.holdMs, limit: options.limit },
  ).rows(db)
}

/** Sweeps deliveries that go on again `delayMs` from now, or from the instant at which their next attempt is due. */
export async function sweepAgain(db: Db, deliveryIds: string[], delayMs: number): Promise<void> {
  await sql(
    `UPDATE delivery d
        SET paused_since = NULL,
            sweep_at = greatest(d.sweep_at, greatest(now(), ${DUE_AT}) + :delayMs * interval '1 ms')
      WHERE d.id = ANY(:deliveryIds::uuid[]) AND ${STARTED}`,
    { deliveryIds, delayMs },
  ).rows(db)
}

/**
 * When to sweep a late delivery `d` again: after half of the time for which it has been overdue, at least `:minMs` and at
 * most `:maxMs`.
 */
export const LATER = `greatest(d.sweep_at, greatest(now(), ${DUE_AT}) + greatest(:minMs * interval '1 ms',
                        least(:maxMs * interval '1 ms', (now() - ${DUE_AT}) / 2)))`

/** The same for deliveries that are only late, at growing intervals. */
export async function sweepLater(
  db: Db,
  deliveryIds: string[],
  delay: { minMs: number; maxMs: number },
): Promise<void> {
  await sql(
    `UPDATE delivery d
        SET paused_since = NULL, sweep_at = ${LATER}
      WHERE d.id = ANY(:deliveryIds::uuid[]) AND ${STARTED}`,
    { deliveryIds, minMs: delay.minMs, maxMs: delay.maxMs },
  ).rows(db)
}

/** Releases what this process took and could not recover; any process takes it after `delayMs`, or half more. */
export async function giveBack(db: Db, deliveryIds: string[], delayMs: number): Promise<void> {
  await sql(
    `UPDATE delivery SET sweep_at = least(sweep_at, now() + :delayMs * (1 + random() / 2) * interval '1 ms')
      WHERE id = ANY(:deliveryIds::uuid[]) AND sweep_at IS NOT NULL AND state <> 'completed'`,
    { deliveryIds, delayMs },
  ).rows(db)
}

/**
 * Makes everything due for the sweeper that had a workflow and does not wait for its time: overdue deliveries, round
 * robin over webhooks; open incidents, incidents with messages left to send, and retry jobs. All workflows are gone.
 */
export async function sweepEverything(db: Db): Promise<void> {
  await sql(`UPDATE delivery d SET sweep_at = now() + least(o.place, ${MAX_SPREAD_MS}) * interval '1 ms'
       FROM (SELECT d.id, row_number() OVER (PARTITION BY d.webhook_id ORDER BY d.sweep_at) AS place
               FROM delivery d WHERE ${STARTED} AND d.sweep_at IS NOT NULL AND ${DUE_AT} < now()) o
      WHERE d.id = o.id AND ${STARTED} AND d.sweep_at IS NOT NULL`).rows(db)
  await sql(`UPDATE incident i SET sweep_at = now()
      WHERE i.closed_at IS NULL
         OR EXISTS (SELECT 1 FROM notification n WHERE n.incident_id = i.id AND n.state IN ('pending', 'sending'))`).rows(
    db,
  )
  await sql(`UPDATE organisation_erasure SET sweep_at = now()`).rows(db)
  await sql(`UPDATE retry_job SET sweep_at = now() WHERE sweep_at > now()`).rows(db)
}

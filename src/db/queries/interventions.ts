import { EntityManager } from 'typeorm'
import type { StopReason } from '../../domain/delivery-state.ts'
import type { RetryMode } from '../../domain/retry-mode.ts'
import { firstRow, rows, type Db } from '../db.ts'
import { allowLongerStatements } from '../longer-statements.ts'
import { coversSql, isCoveredSql } from './webhooks.ts'

/**
 * A delivery whose next attempt a person asked for: what its workflow is to be told. `isFirst`: nothing, since it has
 * none yet, and whoever keeps it is about to make its first attempt.
 */
export type AskedDelivery = {
  deliveryId: string
  attempts: number
  eventKey: string
  url: string
  isFirst: boolean
}

/** After that time the sweep repeats what a process that died could not tell a workflow any more. */
const TELL_AGAIN_AFTER = `interval '5 seconds'`

/**
 * Notes on the row that a person wants the next attempt at once: of a waiting delivery now, of one with an attempt
 * under way should that fail, as a first attempt may be whose row still says `pending`. A `stopped` one with attempts
 * left resumes its schedule; any other that ended comes back for one attempt. Nothing for a completed one, a test event,
 * a webhook that is not live, or an event key that the webhook is no longer subscribed to. The row is the truth; the
 * signal that follows only wakes the workflow up.
 */
function askSql(selection: string, stillIn: string): string {
  return `WITH hook AS (
      SELECT id, url, subscribed_event_keys FROM webhook
       WHERE organisation_id = $1 AND id = $2 AND enabled AND deleted_at IS NULL FOR SHARE
    ), chosen AS (
      SELECT d.id FROM delivery d, hook WHERE d.webhook_id = hook.id AND d.organisation_id = $1 AND NOT d.is_test
         AND ${selection}
    ), asked AS (
      UPDATE delivery d
         SET retry_requested = true,
             stop_reason = NULL,
             state = CASE WHEN ${AT_REST} THEN 'waiting' ELSE d.state END,
             next_attempt_at = CASE WHEN ${AT_REST} THEN now() ELSE d.next_attempt_at END,
             sweep_at = CASE WHEN ${AT_REST} THEN now() + ${TELL_AGAIN_AFTER} ELSE d.sweep_at END,
             started_at = CASE WHEN ${AT_REST} THEN coalesce(d.started_at, now()) ELSE d.started_at END,
             completed_at = NULL
        FROM chosen, hook
       WHERE d.id = chosen.id AND ${stillIn} AND ${coversSql('(SELECT key FROM event WHERE id = d.event_id)', 'hook')}
      RETURNING d.id, d.attempts, d.event_id, d.state = 'pending' AND d.started_at IS NULL AS is_first
    )
    SELECT c.id AS "deliveryId", a.attempts, e.key AS "eventKey", hook.url, a.is_first AS "isFirst"
      FROM chosen c CROSS JOIN hook LEFT JOIN asked a ON a.id = c.id LEFT JOIN event e ON e.id = a.event_id
     ORDER BY c.id`
}

/**
 * The deliveries `d` that each mode covers; each condition is served by an index in the order of ids. `stopped` passes
 * over what a user discarded.
 */
export const COVERED_BY: Record<RetryMode, string[]> = {
  failed: [`d.state = 'failed'`],
  force: [`d.state = 'failed'`, `d.state = 'waiting'`],
  stopped: [
    `d.state = 'stopped' AND NOT d.is_test AND d.stop_reason IN ('webhook_disabled', 'unsubscribed')`,
  ],
}

/** Neither before its first attempt nor in the middle of one. */
const AT_REST = `d.state IN ('waiting', 'failed', 'stopped')`

type Chosen = { [Key in keyof AskedDelivery]: AskedDelivery[Key] | null } & { deliveryId: string }

function isAsked(chosen: Chosen): chosen is Chosen & AskedDelivery {
  return chosen.attempts !== null
}

/**
 * For one delivery. Null when it is completed, a test event, unknown, or its webhook is not live or no longer takes
 * such events.
 */
export async function askForRetry(
  db: Db,
  organisationId: string,
  webhookId: string,
  deliveryId: string,
): Promise<AskedDelivery | null> {
  const chosen = await rows<Chosen>(db, askSql('d.id = $3', `d.state <> 'completed'`), [
    organisationId,
    webhookId,
    deliveryId,
  ])
  return chosen.find(isAsked) ?? null
}

/**
 * For the next `limit` deliveries of a webhook after `cursor` that a retry job covers, in the order of ids; of those,
 * only what was there when the job was made. The caller holds the lock on the job's place (`lockRetryPart`).
 * `last` is where to go on; null when nothing is left.
 */
export async function askForNextRetries(
  db: Db,
  page: {
    organisationId: string
    webhookId: string
    jobId: string
    mode: RetryMode
    cursor: string | null
    limit: number
  },
): Promise<{ asked: AskedDelivery[]; last: string | null }> {
  const pageOf = (state: string): string =>
    `(SELECT id FROM delivery d WHERE webhook_id = $2 AND ${state} AND ($3::uuid IS NULL OR id > $3::uuid)
        AND coalesce(completed_at, created_at) <= (SELECT created_at FROM retry_job WHERE id = $4)
        AND ${isCoveredSql('d')}
      ORDER BY id LIMIT $5)`
  const pages = COVERED_BY[page.mode].map(pageOf).join(' UNION ALL ')
  // Looked at once more when the row is locked: what was discarded or begun meanwhile is left alone.
  const sql = askSql(
    `d.id IN (SELECT id FROM (${pages}) covered ORDER BY id LIMIT $5)`,
    `(${COVERED_BY[page.mode].join(' OR ')})`,
  )
  const { organisationId, webhookId, cursor, jobId, limit } = page
  const chosen = await rows<Chosen>(db, sql, [organisationId, webhookId, cursor, jobId, limit])
  return { asked: chosen.filter(isAsked), last: chosen.at(-1)?.deliveryId ?? null }
}

/** The attempt `number` that a retry job asked for. */
export type AskedAttempt = { deliveryId: string; number: number }

/**
 * What became of each attempt: `none` where the delivery ended without it (stopped, or purged). In the order given.
 */
export async function findAskedAttempts(
  db: Db,
  organisationId: string,
  asked: readonly AskedAttempt[],
): Promise<(AskedAttempt & { outcome: 'under_way' | 'succeeded' | 'failed' | 'none' })[]> {
  return rows(
    db,
    `SELECT asked.id AS "deliveryId", asked.number, CASE
              WHEN a.outcome IS NOT NULL THEN a.outcome
              WHEN d.attempts < asked.number AND d.state IN ('pending', 'in_progress', 'waiting') THEN 'under_way'
              ELSE 'none' END AS outcome
       FROM unnest($2::uuid[], $3::int[]) WITH ORDINALITY AS asked (id, number, place)
       LEFT JOIN delivery d ON d.id = asked.id AND d.organisation_id = $1
       LEFT JOIN attempt a ON a.delivery_id = d.id AND a.number = asked.number
      ORDER BY asked.place`,
    [organisationId, asked.map(({ deliveryId }) => deliveryId), asked.map(({ number }) => number)],
  )
}

/**
 * Stops every delivery of a webhook that has not been attempted or waits for a retry; the webhook's row is locked by
 * the caller. Their workflows are told by the sweep. An attempt under way finishes first. Returns how many.
 */
export function stopDeliveries(
  db: Db,
  organisationId: string,
  webhookId: string,
  reason: StopReason,
): Promise<number> {
  return stopAll(db, organisationId, webhookId, { which: `state IN ('pending', 'waiting')`, reason })
}

/**
 * Stops those of them whose event key the webhook, as it is now, is not subscribed to. The caller has just narrowed the
 * subscription in this transaction. Returns how many.
 */
export function stopUncoveredDeliveries(db: Db, organisationId: string, webhookId: string): Promise<number> {
  const which = `state IN ('pending', 'waiting') AND NOT ${isCoveredSql('delivery')}`
  return stopAll(db, organisationId, webhookId, { which, reason: 'unsubscribed' })
}

/** Stops one waiting or failed delivery by a user's wish; null when it is in no such state. */
export async function discardDelivery(
  db: Db,
  organisationId: string,
  webhookId: string,
  deliveryId: string,
): Promise<{ id: string } | null> {
  return firstRow(
    db,
    `UPDATE delivery SET state = 'stopped', stop_reason = 'discarded', ${STOPPED}
      WHERE organisation_id = $1 AND webhook_id = $2 AND id = $3 AND state IN ('waiting', 'failed') RETURNING id`,
    [organisationId, webhookId, deliveryId],
  )
}

/** Stops every permanently failed delivery of a webhook; returns how many. */
export function discardFailed(db: Db, organisationId: string, webhookId: string): Promise<number> {
  return stopAll(db, organisationId, webhookId, { which: `state = 'failed'`, reason: 'discarded' })
}

async function stopAll(
  db: Db,
  organisationId: string,
  webhookId: string,
  { which, reason }: { which: string; reason: StopReason },
): Promise<number> {
  // There may be hundreds of thousands of them.
  if (db instanceof EntityManager) await allowLongerStatements(db)
  const counted = await firstRow<{ count: number }>(
    db,
    `WITH stopped AS (
       UPDATE delivery SET state = 'stopped', stop_reason = $3, ${STOPPED}
        WHERE organisation_id = $1 AND webhook_id = $2 AND ${which} RETURNING 1
     ) SELECT count(*)::int AS count FROM stopped`,
    [organisationId, webhookId, reason],
  )
  return counted?.count ?? 0
}

/** A waiting delivery has a workflow that sleeps and has to be told; a failed one's has ended. */
const STOPPED = `next_attempt_at = NULL, retry_requested = false, completed_at = now(),
  owner = NULL, lease_until = NULL, sweep_at = CASE WHEN state = 'failed' THEN NULL ELSE now() END`

/**
 * Takes deliveries whose workflow has still to be told of their end, for a while: stopped ones, and such as were
 * completed by an attempt that another one had already taken the place of.
 */
export async function takeToTell(db: Db, limit: number): Promise<{ deliveryId: string }[]> {
  return rows(
    db,
    `WITH due AS (
       SELECT id FROM delivery WHERE sweep_at < now() AND ${TO_BE_TOLD}
        ORDER BY sweep_at LIMIT $1 FOR UPDATE SKIP LOCKED
     )
     UPDATE delivery d SET sweep_at = now() + interval '1 minute' FROM due WHERE d.id = due.id
     RETURNING d.id AS "deliveryId"`,
    [limit],
  )
}

/** As the index has it. A completed delivery without a workflow may be marked for one instead. */
const TO_BE_TOLD = `sweep_at IS NOT NULL AND (state = 'stopped' OR state = 'completed' AND started_at IS NOT NULL)`

/** Notes that the workflows of these deliveries were told, or are no more. */
export async function markTold(db: Db, deliveryIds: string[]): Promise<void> {
  await rows(db, `UPDATE delivery SET sweep_at = NULL WHERE id = ANY($1::uuid[]) AND ${TO_BE_TOLD}`, [
    deliveryIds,
  ])
}

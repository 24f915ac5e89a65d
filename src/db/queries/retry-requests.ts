// Hand-written: rows are chosen, locked, checked and changed in one statement.
import { EVERY_DELIVERY, type DeliverySelection } from '../../domain/delivery-filter.ts'
import type { RetryMode } from '../../domain/retry-mode.ts'
import { sql, type Db } from '../db.ts'
import { IS_SELECTED, MAX_LOOKED_AT, selectionParameters } from './delivery-selection.ts'
import { coversSql, isCoveredSql } from './webhooks.ts'

/**
 * A delivery whose next attempt a user requested, to signal its workflow. `isFirst`: it has no workflow yet, and the
 * owner of its lease is about to make its first attempt.
 */
export type RetryRequestedDelivery = {
  deliveryId: string
  attempts: number
  eventKey: string
  url: string
  isFirst: boolean
}

/** After this time the sweeper sends the signal of a process that died before it did. */
const SIGNAL_TIMEOUT = `interval '5 seconds'`

/**
 * Records on the row that a user requested the next attempt at once: a waiting delivery becomes due now; one with an
 * attempt in progress (its row may still be `pending` during a first attempt) is retried if that fails. A `stopped` one
 * with attempts left resumes its schedule; any other that ended gets one attempt. Does nothing for a completed one, a
 * test event, a webhook that is not live, or an event key that the webhook is no longer subscribed to. The row is
 * authoritative; the signal that follows only wakes the workflow up.
 */
function retryRequestSql(selection: string, stillIn: string): string {
  return `WITH hook AS (
      SELECT id, url, subscribed_event_keys FROM webhook
       WHERE organisation_id = :organisationId AND id = :webhookId AND enabled AND deleted_at IS NULL
    ), chosen AS (
      SELECT d.id FROM delivery d, hook WHERE d.webhook_id = hook.id AND d.organisation_id = :organisationId AND NOT d.is_test
         AND ${selection}
    ), requested AS (
      UPDATE delivery d
         SET retry_requested = true,
             stop_reason = NULL,
             paused_since = NULL,
             state = CASE WHEN ${AT_REST} THEN 'waiting' ELSE d.state END,
             next_attempt_at = CASE WHEN ${AT_REST} THEN now() ELSE d.next_attempt_at END,
             sweep_at = CASE WHEN ${AT_REST} THEN now() + ${SIGNAL_TIMEOUT} ELSE d.sweep_at END,
             started_at = CASE WHEN ${AT_REST} THEN coalesce(d.started_at, now()) ELSE d.started_at END,
             completed_at = NULL
        FROM chosen, hook
       WHERE d.id = chosen.id AND ${stillIn} AND ${coversSql('(SELECT key FROM event WHERE id = d.event_id)', 'hook')}
      RETURNING d.id, d.attempts, d.event_id, d.state = 'pending' AND d.started_at IS NULL AS is_first
    )
    SELECT c.id AS "deliveryId", a.attempts, e.key AS "eventKey", hook.url, a.is_first AS "isFirst"
      FROM chosen c CROSS JOIN hook LEFT JOIN requested a ON a.id = c.id LEFT JOIN event e ON e.id = a.event_id
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
  undelivered: [`d.state = 'failed'`, `d.state = 'waiting'`, `d.state = 'stopped' AND NOT d.is_test`],
}

/** Neither before its first attempt nor in the middle of one. */
const AT_REST = `d.state IN ('waiting', 'failed', 'stopped')`

type Chosen = { [Key in keyof RetryRequestedDelivery]: RetryRequestedDelivery[Key] | null } & {
  deliveryId: string
}

function isRetryRequested(chosen: Chosen): chosen is Chosen & RetryRequestedDelivery {
  return chosen.attempts !== null
}

/**
 * Requests a retry of one delivery. Returns null when it is completed, a test event, unknown, or its webhook is not
 * live or no longer subscribed to its event key.
 */
export async function requestRetry(
  db: Db,
  organisationId: string,
  webhookId: string,
  deliveryId: string,
): Promise<RetryRequestedDelivery | null> {
  const text = retryRequestSql('d.id = :deliveryId', `d.state <> 'completed'`)
  const chosen = await sql(text, { organisationId, webhookId, deliveryId }).rows<Chosen>(db)
  return chosen.find(isRetryRequested) ?? null
}

/**
 * Requests retries of the next `limit` deliveries of a webhook after `cursor` that a retry job covers, in the order of
 * ids; skips those created or ended after the job. With a filter it looks at {@link MAX_LOOKED_AT} deliveries at most.
 * The caller holds the lock of `lockRetryPart`. `last` is the next cursor; null when nothing is left.
 */
export async function requestNextRetries(
  db: Db,
  page: {
    organisationId: string
    webhookId: string
    jobId: string
    mode: RetryMode
    selection?: DeliverySelection
    cursor: string | null
    limit: number
  },
): Promise<{ requested: RetryRequestedDelivery[]; last: string | null }> {
  const { organisationId, webhookId, cursor, jobId, limit, selection = EVERY_DELIVERY } = page
  const upTo = selection.filter === null ? null : await lastLookedAt(db, { ...page, selection })
  const pageOf = (state: string): string =>
    `(SELECT id FROM delivery d WHERE webhook_id = :webhookId AND ${state} AND (:cursor::uuid IS NULL OR id > :cursor::uuid)
        AND (:upTo::uuid IS NULL OR id <= :upTo::uuid) AND ${IS_SELECTED}
        AND coalesce(completed_at, created_at) <= (SELECT created_at FROM retry_job WHERE id = :jobId)
        AND ${isCoveredSql('d')}
      ORDER BY id LIMIT :limit)`
  const pages = COVERED_BY[page.mode].map(pageOf).join(' UNION ALL ')
  // Checked once more when the row is locked: what was discarded or begun meanwhile is left alone.
  const text = retryRequestSql(
    `d.id IN (SELECT id FROM (${pages}) covered ORDER BY id LIMIT :limit)`,
    `(${COVERED_BY[page.mode].join(' OR ')})`,
  )
  const parameters = {
    organisationId,
    webhookId,
    cursor,
    upTo,
    jobId,
    limit,
    ...selectionParameters(selection),
  }
  const chosen = await sql(text, parameters).rows<Chosen>(db)
  return { requested: chosen.filter(isRetryRequested), last: chosen.at(-1)?.deliveryId ?? upTo }
}

/** Returns how far one step looks for deliveries that fit a filter; null where the rest is within its bound. */
async function lastLookedAt(
  db: Db,
  page: {
    organisationId: string
    webhookId: string
    mode: RetryMode
    selection: DeliverySelection
    cursor: string | null
  },
): Promise<string | null> {
  const { organisationId, webhookId, mode, selection, cursor } = page
  const { from, before } = selectionParameters(selection)
  const pageOf = (state: string): string =>
    `(SELECT id FROM delivery d WHERE organisation_id = :organisationId AND webhook_id = :webhookId AND ${state}
        AND (:cursor::uuid IS NULL OR id > :cursor::uuid) AND id >= :from::uuid AND id < :before::uuid
      ORDER BY id LIMIT :limit)`
  const pages = COVERED_BY[mode].map(pageOf).join(' UNION ALL ')
  const last = await sql(`SELECT id FROM (${pages}) covered ORDER BY id OFFSET :limit - 1 LIMIT 1`, {
    organisationId,
    webhookId,
    cursor,
    from,
    before,
    limit: MAX_LOOKED_AT,
  }).first<{ id: string }>(db)
  return last?.id ?? null
}

/** The attempt `number` that a retry job requested. */
export type RequestedAttempt = { deliveryId: string; number: number }

/**
 * Returns the outcome of each attempt, in the order given: `none` where the delivery ended without it (stopped, or
 * purged).
 */
export async function findRequestedAttempts(
  db: Db,
  organisationId: string,
  attempts: readonly RequestedAttempt[],
): Promise<(RequestedAttempt & { outcome: 'under_way' | 'succeeded' | 'failed' | 'none' })[]> {
  return sql(
    `SELECT requested.id AS "deliveryId", requested.number, CASE
              WHEN a.outcome IS NOT NULL THEN a.outcome
              WHEN d.attempts < requested.number AND d.state IN ('pending', 'in_progress', 'waiting') THEN 'under_way'
              ELSE 'none' END AS outcome
       FROM unnest(:deliveryIds::uuid[], :numbers::int[]) WITH ORDINALITY AS requested (id, number, place)
       LEFT JOIN delivery d ON d.id = requested.id AND d.organisation_id = :organisationId
       LEFT JOIN attempt a ON a.delivery_id = d.id AND a.number = requested.number
      ORDER BY requested.place`,
    {
      organisationId,
      deliveryIds: attempts.map(({ deliveryId }) => deliveryId),
      numbers: attempts.map(({ number }) => number),
    },
  ).rows(db)
}

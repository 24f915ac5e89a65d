// Hand-written: compare-and-set on a delivery, with what its attempt needs, in one statement.
import type { FailureCode } from '../../domain/attempt-outcome.ts'
import type { DeliveryState } from '../../domain/delivery-state.ts'
import { sql, type Db } from '../db.ts'
import { coversSql, stopReasonSql } from './webhooks.ts'

/** Which attempt of which delivery. `number` is 1-based. */
export type AttemptKey = { organisationId: string; deliveryId: string; number: number }

/** What an attempt needs, read in the statement that claims the row. */
export type Claim = {
  state: 'in_progress' | 'stopped'
  /** True when a user requested this attempt. */
  retryRequested: boolean
  /** How many times this attempt was begun, this one included. */
  claims: number
  /** How long ago the delivery was committed, on the database's clock. */
  ageMs: number
  webhookId: string
  eventKey: string
  /** Of the event, for the log. */
  traceId: string
  url: string
  /** Sealed. */
  secret: string | null
  body: Buffer
}

/** A claim may be so much too early on the database's clock: offsets to it are measured as exactly as this. */
const DUE_TOLERANCE = `interval '3 ms'`

const LIVE = `(w.enabled AND w.deleted_at IS NULL AND ${coversSql('e.key')})`

const CLAIM_ATTEMPT = `UPDATE delivery d
    SET state = CASE WHEN ${LIVE} THEN 'in_progress' ELSE 'stopped' END,
        stop_reason = ${stopReasonSql('e.key')},
        claims = CASE WHEN d.owner = :owner::uuid AND d.state = 'in_progress' THEN d.claims ELSE d.claims + 1 END,
        owner = :owner::uuid,
        lease_until = now() + :leaseMs * interval '1 ms',
        sweep_at = CASE WHEN ${LIVE} THEN now() + :sweepAfterMs * interval '1 ms' END,
        next_attempt_at = CASE WHEN ${LIVE} THEN d.next_attempt_at END,
        attempt_requested = d.state <> 'pending' AND d.retry_requested OR d.state = 'in_progress' AND d.attempt_requested,
        retry_requested = false,
        paused_since = NULL,
        started_at = CASE WHEN :inline::boolean THEN d.started_at ELSE coalesce(d.started_at, now()) END,
        completed_at = CASE WHEN ${LIVE} THEN NULL ELSE now() END
   FROM webhook w, event e
  WHERE d.id = :deliveryId AND d.organisation_id = :organisationId AND d.attempts = :number::int - 1
    AND (d.state = 'pending'
         OR d.state = 'waiting' AND (NOT :onlyIfDue::boolean OR d.next_attempt_at <= now() + ${DUE_TOLERANCE})
         OR d.state = 'in_progress' AND (d.lease_until < now() OR d.owner = :owner::uuid))
    AND w.id = d.webhook_id AND e.id = d.event_id
  RETURNING d.state, d.claims, d.attempt_requested AS "retryRequested", d.webhook_id AS "webhookId", e.key AS "eventKey", e.trace_id AS "traceId", w.url, w.secret, e.body,
            (extract(epoch FROM clock_timestamp() - d.created_at) * 1000)::float8 AS "ageMs"` as const

/**
 * Takes the delivery for attempt `number`, by compare-and-set: the row must be at `number - 1` recorded attempts,
 * not final, and not leased to another attempt that may still be posting. The delivery becomes `stopped` instead if its
 * webhook is disabled, deleted or no longer subscribed to the event key. With `onlyIfDue` a waiting row is taken only
 * when it is due by the database's clock. `inline`: the attempt is made without a workflow. A retry requested before
 * the first attempt is that attempt. Returns null when the row could not be taken (`findStanding` returns why).
 */
export async function claimAttempt(
  db: Db,
  key: AttemptKey,
  lease: { owner: string; leaseMs: number; sweepAfterMs: number; onlyIfDue: boolean; inline: boolean },
): Promise<Claim | null> {
  const { organisationId, deliveryId, number } = key
  const { owner, leaseMs, sweepAfterMs, onlyIfDue, inline } = lease
  const parameters = { organisationId, deliveryId, number, owner, leaseMs, sweepAfterMs, onlyIfDue, inline }
  const [claim] = await sql(CLAIM_ATTEMPT, parameters).preparedRows<Claim>(db, 'claim_attempt')
  return claim ?? null
}

/**
 * Releases a claimed row whose run ends without an outcome, so that another run can make the attempt at once.
 * `counts`: its POST may have been sent, so it counts as a lost worker. Without a workflow the sweeper makes the
 * attempt again. Does nothing when the row no longer belongs to this owner.
 */
export async function releaseClaim(
  db: Db,
  { deliveryId, organisationId, number }: AttemptKey,
  { owner, counts }: { owner: string; counts: boolean },
): Promise<void> {
  await sql(
    `UPDATE delivery SET claims = claims - CASE WHEN :counts THEN 0 ELSE 1 END, owner = NULL, lease_until = now(),
            state = CASE WHEN started_at IS NULL THEN 'pending' ELSE state END,
            sweep_at = CASE WHEN started_at IS NULL THEN now() ELSE sweep_at END
      WHERE id = :deliveryId AND organisation_id = :organisationId AND attempts = :number::int - 1 AND state = 'in_progress' AND owner = :owner`,
    { deliveryId, organisationId, number, owner, counts },
  ).first(db)
}

/** A row that is leased to the run that claimed it, or to the process that committed it. */
export type LeasedRow = { deliveryId: string; owner: string; sweepAfterMs: number }

/**
 * Renews the leases of rows that still belong to their owners. Skips locked rows: the transaction with the lock is
 * about to record an outcome.
 */
export async function renewClaims(db: Db, leased: readonly LeasedRow[], leaseMs: number): Promise<void> {
  await sql(
    `WITH mine AS (
       SELECT d.id, leased.sweep_after_ms
         FROM unnest(:deliveryIds::uuid[], :owners::uuid[], :sweepAfter::float8[]) AS leased (id, owner, sweep_after_ms)
         JOIN delivery d ON d.id = leased.id AND d.owner = leased.owner
        WHERE d.state IN ('pending', 'in_progress') FOR NO KEY UPDATE OF d SKIP LOCKED
     )
     UPDATE delivery d
        SET lease_until = now() + :leaseMs * interval '1 ms', sweep_at = now() + mine.sweep_after_ms * interval '1 ms'
       FROM mine WHERE d.id = mine.id`,
    {
      deliveryIds: leased.map(({ deliveryId }) => deliveryId),
      owners: leased.map(({ owner }) => owner),
      sweepAfter: leased.map(({ sweepAfterMs }) => sweepAfterMs),
      leaseMs,
    },
  ).rows(db)
}

/** The state of a delivery, and the record of attempt `number` if there is one. */
export type Standing = {
  state: DeliveryState
  attempts: number
  nextAttemptAt: Date | null
  /** A user requested the next attempt at once. */
  retryRequested: boolean
  /** In how many ms the next attempt is due, by the database's clock; not positive when it may be made by now. */
  dueInMs: number
  /** Unix ms of the database's clock. */
  nowMs: number
  /** Rest of another attempt's lease of the row, in ms; 0 without one. */
  leasedForMs: number
  recorded: {
    outcome: 'succeeded' | 'failed'
    failureCode: FailureCode | null
    statusCode: number | null
    endedAt: Date
  } | null
}

export async function findStanding(
  db: Db,
  { organisationId, deliveryId, number }: AttemptKey,
): Promise<Standing | null> {
  const found = await sql(
    `SELECT d.state, d.attempts, d.next_attempt_at AS "nextAttemptAt",
            d.retry_requested AS "retryRequested",
            coalesce(extract(epoch FROM d.next_attempt_at - now()) * 1000, 0)::float8 AS "dueInMs",
            (extract(epoch FROM now()) * 1000)::float8 AS "nowMs",
            CASE WHEN d.state = 'in_progress'
                 THEN greatest(0, extract(epoch FROM d.lease_until - now()) * 1000)::float8 ELSE 0 END AS "leasedForMs",
            a.outcome, a.failure_code AS "failureCode", a.status_code AS "statusCode",
            a.started_at + a.duration_ms * interval '1 ms' AS "endedAt"
       FROM delivery d LEFT JOIN attempt a ON a.delivery_id = d.id AND a.number = :number::int
      WHERE d.id = :deliveryId AND d.organisation_id = :organisationId`,
    { deliveryId, organisationId, number },
  ).first<Omit<Standing, 'recorded'> & RecordedColumns>(db)
  if (found === null) return null
  const { outcome, failureCode, statusCode, endedAt, ...standing } = found
  const recorded = outcome === null || endedAt === null ? null : { outcome, failureCode, statusCode, endedAt }
  return { ...standing, recorded }
}

type RecordedColumns = {
  outcome: 'succeeded' | 'failed' | null
  failureCode: FailureCode | null
  statusCode: number | null
  endedAt: Date | null
}

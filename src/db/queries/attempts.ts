import type { FailureCode } from '../../domain/attempt-outcome.ts'
import type { DeliveryState } from '../../domain/delivery-state.ts'
import { firstRow, rows, type Db } from '../db.ts'
import { preparedRows, type Prepared } from '../prepared.ts'
import { coversSql, stopReasonSql } from './webhooks.ts'

/** Which attempt of which delivery. `number` is 1-based. */
export type AttemptKey = { organisationId: string; deliveryId: string; number: number }

/** What an attempt needs, read in the statement that claims the row. */
export type Claim = {
  state: 'in_progress' | 'stopped'
  /** True when a person asked for this attempt. */
  asked: boolean
  /** How many times this attempt was begun, this one included. */
  claims: number
  /** How long ago the delivery was committed, on the database's clock. */
  ageMs: number
  webhookId: string
  eventKey: string
  url: string
  /** Sealed. */
  secret: string | null
  body: Buffer
}

/** A claim may be so much too early on the database's clock: offsets to it are measured as exactly as this. */
const DUE_TOLERANCE = `interval '3 ms'`

const LIVE = `(w.enabled AND w.deleted_at IS NULL AND ${coversSql('e.key')})`

const CLAIM_ATTEMPT: Prepared = {
  name: 'claim_attempt',
  text: `UPDATE delivery d
    SET state = CASE WHEN ${LIVE} THEN 'in_progress' ELSE 'stopped' END,
        stop_reason = ${stopReasonSql('e.key')},
        claims = CASE WHEN d.owner = $4::uuid AND d.state = 'in_progress' THEN d.claims ELSE d.claims + 1 END,
        owner = $4::uuid,
        lease_until = now() + $5 * interval '1 ms',
        sweep_at = CASE WHEN ${LIVE} THEN now() + $6 * interval '1 ms' END,
        next_attempt_at = CASE WHEN ${LIVE} THEN d.next_attempt_at END,
        attempt_requested = d.state <> 'pending' AND d.retry_requested OR d.state = 'in_progress' AND d.attempt_requested,
        retry_requested = false,
        started_at = CASE WHEN $8::boolean THEN d.started_at ELSE coalesce(d.started_at, now()) END,
        completed_at = CASE WHEN ${LIVE} THEN NULL ELSE now() END
   FROM webhook w, event e
  WHERE d.id = $1 AND d.organisation_id = $2 AND d.attempts = $3::int - 1
    AND (d.state = 'pending'
         OR d.state = 'waiting' AND (NOT $7::boolean OR d.next_attempt_at <= now() + ${DUE_TOLERANCE})
         OR d.state = 'in_progress' AND (d.lease_until < now() OR d.owner = $4::uuid))
    AND w.id = d.webhook_id AND e.id = d.event_id
  RETURNING d.state, d.claims, d.attempt_requested AS asked, d.webhook_id AS "webhookId", e.key AS "eventKey", w.url, w.secret, e.body,
            (extract(epoch FROM clock_timestamp() - d.created_at) * 1000)::float8 AS "ageMs"`,
}

/**
 * Takes the delivery for attempt `number`, by compare-and-set: the row must be at `number - 1` recorded attempts,
 * not final, and not held by another attempt that may still be posting. A webhook that is disabled, deleted or no longer
 * subscribed to the event key turns the delivery into `stopped` instead. With `onlyIfDue` a waiting row is taken only
 * when its time has come, by the database's clock. `inline`: the attempt is made without a workflow. A retry that was
 * asked for before the first attempt is that attempt. Null when the row could not be taken (`findStanding` tells why).
 */
export async function claimAttempt(
  db: Db,
  key: AttemptKey,
  hold: { owner: string; leaseMs: number; sweepAfterMs: number; onlyIfDue: boolean; inline: boolean },
): Promise<Claim | null> {
  const values = [
    key.deliveryId,
    key.organisationId,
    key.number,
    hold.owner,
    hold.leaseMs,
    hold.sweepAfterMs,
    hold.onlyIfDue,
    hold.inline,
  ]
  const [claim] = await preparedRows<Claim>(db, CLAIM_ATTEMPT, values)
  return claim ?? null
}

/**
 * Lets go of a claimed row whose run ends without an outcome, so that the attempt can be made by anyone at once.
 * `counts`: its POST may have been sent, so it counts as a lost worker. Where no workflow makes it again the sweep does. Nothing where the row is no longer this owner's.
 */
export async function releaseClaim(
  db: Db,
  key: AttemptKey,
  run: { owner: string; counts: boolean },
): Promise<void> {
  await firstRow(
    db,
    `UPDATE delivery SET claims = claims - CASE WHEN $5 THEN 0 ELSE 1 END, owner = NULL, lease_until = now(),
            state = CASE WHEN started_at IS NULL THEN 'pending' ELSE state END,
            sweep_at = CASE WHEN started_at IS NULL THEN now() ELSE sweep_at END
      WHERE id = $1 AND organisation_id = $2 AND attempts = $3::int - 1 AND state = 'in_progress' AND owner = $4`,
    [key.deliveryId, key.organisationId, key.number, run.owner, run.counts],
  )
}

/** A row that a run has claimed, or a process holds since its commit. */
export type HeldRow = { deliveryId: string; owner: string; sweepAfterMs: number }

/**
 * Prolongs the leases of rows whose owners still have them. Rows that are locked are passed over: whoever has the lock
 * is about to record an outcome.
 */
export async function renewClaims(db: Db, held: readonly HeldRow[], leaseMs: number): Promise<void> {
  await rows(
    db,
    `WITH mine AS (
       SELECT d.id, held.sweep_after_ms
         FROM unnest($1::uuid[], $2::uuid[], $3::float8[]) AS held (id, owner, sweep_after_ms)
         JOIN delivery d ON d.id = held.id AND d.owner = held.owner
        WHERE d.state IN ('pending', 'in_progress') FOR NO KEY UPDATE OF d SKIP LOCKED
     )
     UPDATE delivery d
        SET lease_until = now() + $4 * interval '1 ms', sweep_at = now() + mine.sweep_after_ms * interval '1 ms'
       FROM mine WHERE d.id = mine.id`,
    [
      held.map(({ deliveryId }) => deliveryId),
      held.map(({ owner }) => owner),
      held.map(({ sweepAfterMs }) => sweepAfterMs),
      leaseMs,
    ],
  )
}

/** Where a delivery stands, and the record of attempt `number` if there is one. */
export type Standing = {
  state: DeliveryState
  attempts: number
  nextAttemptAt: Date | null
  /** A person asked for the next attempt at once. */
  asked: boolean
  /** In how many ms the next attempt is due, by the database's clock; not positive when it may be made by now. */
  dueInMs: number
  /** Unix ms of the database's clock. */
  nowMs: number
  /** How long another attempt may still hold the row, in ms; 0 when nobody does. */
  heldForMs: number
  recorded: {
    outcome: 'succeeded' | 'failed'
    failureCode: FailureCode | null
    statusCode: number | null
    endedAt: Date
  } | null
}

export async function findStanding(db: Db, key: AttemptKey): Promise<Standing | null> {
  const found = await firstRow<Omit<Standing, 'recorded'> & RecordedColumns>(
    db,
    `SELECT d.state, d.attempts, d.next_attempt_at AS "nextAttemptAt",
            d.retry_requested AS asked,
            coalesce(extract(epoch FROM d.next_attempt_at - now()) * 1000, 0)::float8 AS "dueInMs",
            (extract(epoch FROM now()) * 1000)::float8 AS "nowMs",
            CASE WHEN d.state = 'in_progress'
                 THEN greatest(0, extract(epoch FROM d.lease_until - now()) * 1000)::float8 ELSE 0 END AS "heldForMs",
            a.outcome, a.failure_code AS "failureCode", a.status_code AS "statusCode",
            a.started_at + a.duration_ms * interval '1 ms' AS "endedAt"
       FROM delivery d LEFT JOIN attempt a ON a.delivery_id = d.id AND a.number = $3::int
      WHERE d.id = $1 AND d.organisation_id = $2`,
    [key.deliveryId, key.organisationId, key.number],
  )
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

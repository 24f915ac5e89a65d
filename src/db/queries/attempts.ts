import type { AttemptTrigger, FailureCode } from '../../domain/attempt-outcome.ts'
import type { DeliveryState } from '../../domain/delivery-state.ts'
import { firstRow, type Db } from '../db.ts'

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

/**
 * Takes the delivery for attempt `number`, by compare-and-set: the row must be at `number - 1` recorded attempts,
 * not final, and not held by another attempt that may still be posting. A disabled or deleted webhook turns the
 * delivery into `stopped` instead. With `onlyIfDue` a waiting row is taken only when its time has come. Null when the row could not be taken (`findStanding` tells why).
 */
export async function claimAttempt(
  db: Db,
  key: AttemptKey,
  hold: { owner: string; leaseMs: number; sweepAfterMs: number; onlyIfDue: boolean },
): Promise<Claim | null> {
  return firstRow(
    db,
    `UPDATE delivery d
        SET state = CASE WHEN ${LIVE} THEN 'in_progress' ELSE 'stopped' END,
            claims = CASE WHEN d.owner = $4::uuid THEN d.claims ELSE d.claims + 1 END,
            owner = $4::uuid,
            lease_until = now() + $5 * interval '1 ms',
            sweep_at = CASE WHEN ${LIVE} THEN now() + $6 * interval '1 ms' END,
            next_attempt_at = CASE WHEN ${LIVE} THEN d.next_attempt_at END,
            retry_requested = false,
            started_at = coalesce(d.started_at, now()),
            completed_at = CASE WHEN ${LIVE} THEN NULL ELSE now() END
       FROM webhook w, event e
      WHERE d.id = $1 AND d.organisation_id = $2 AND d.attempts = $3::int - 1
        AND (d.state = 'pending'
             OR d.state = 'waiting' AND (NOT $7::boolean OR d.next_attempt_at <= now())
             OR d.state = 'in_progress' AND (d.lease_until < now() OR d.owner = $4::uuid))
        AND w.id = d.webhook_id AND e.id = d.event_id
      RETURNING d.state, d.claims, OLD.retry_requested AS asked, d.webhook_id AS "webhookId", e.key AS "eventKey", w.url, w.secret, e.body,
                (extract(epoch FROM clock_timestamp() - d.created_at) * 1000)::float8 AS "ageMs"`,
    [
      key.deliveryId,
      key.organisationId,
      key.number,
      hold.owner,
      hold.leaseMs,
      hold.sweepAfterMs,
      hold.onlyIfDue,
    ],
  )
}

/**
 * Lets go of a claimed row whose run ends without an outcome, so that the attempt can be made by anyone at once.
 * `counts`: its POST may have been sent, so it counts as a lost worker. Nothing where the row is no longer this owner's.
 */
export async function releaseClaim(
  db: Db,
  key: AttemptKey,
  run: { owner: string; counts: boolean },
): Promise<void> {
  await firstRow(
    db,
    `UPDATE delivery SET claims = claims - CASE WHEN $5 THEN 0 ELSE 1 END, owner = NULL, lease_until = now()
      WHERE id = $1 AND organisation_id = $2 AND attempts = $3::int - 1 AND state = 'in_progress' AND owner = $4`,
    [key.deliveryId, key.organisationId, key.number, run.owner, run.counts],
  )
}

const LIVE = `(w.enabled AND w.deleted_at IS NULL)`

/** Where a delivery stands, and the record of attempt `number` if there is one. */
export type Standing = {
  state: DeliveryState
  attempts: number
  nextAttemptAt: Date | null
  /** A person asked for the next attempt at once. */
  asked: boolean
  /** The next attempt may be made by now. */
  due: boolean
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
            d.retry_requested AS asked, d.state <> 'waiting' OR d.next_attempt_at <= now() AS due,
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

/** One ended attempt, as it is kept. */
export type AttemptRecord = AttemptKey & {
  trigger: AttemptTrigger
  url: string
  startedAt: Date
  durationMs: number
  failureCode: FailureCode | null
  statusCode: number | null
  error: string | null
  response: { headers: Record<string, string>; body: string; truncated: boolean } | null
}

/**
 * Records a successful attempt and completes the delivery, in one statement that touches nothing else.
 * False when attempt `number` is recorded already or the row moved on: then nothing is written.
 */
export async function recordSuccess(db: Db, record: AttemptRecord): Promise<boolean> {
  const recorded = await firstRow(
    db,
    `WITH done AS (
       UPDATE delivery d
          SET state = 'completed', completed_at = now(), next_attempt_at = NULL, sweep_at = NULL,
              retry_requested = false, ${ENDED}
        WHERE ${UNDER_WAY} RETURNING id, webhook_id
     ) ${INSERT_ATTEMPT}`,
    [...attemptParameters(record), 'succeeded'],
  )
  return recorded !== null
}

/**
 * Records a failed attempt; the delivery becomes `next.state`, or `stopped` when its webhook is no longer `live`.
 * A retry that a person asked for meanwhile makes it `waiting` for an attempt at once, also where this one would have
 * been the last; a delivery that was brought back by a person has that one attempt only.
 * The caller has locked the webhook's row, so that a switch-off at the same instant is either seen or waits.
 * Null when attempt `number` is recorded already or the row moved on.
 */
export async function recordFailure(
  db: Db,
  record: AttemptRecord,
  next: { live: boolean; state: 'waiting' | 'failed'; nextAttemptAt: Date | null; sweepAfterMs: number },
): Promise<{ state: 'waiting' | 'failed' | 'stopped'; asked: boolean } | null> {
  return firstRow(
    db,
    `WITH done AS (
       UPDATE delivery d
          SET (state, next_attempt_at, sweep_at, completed_at, revived) = (
                SELECT s.state,
                       CASE WHEN s.state = 'waiting' THEN s.due END,
                       CASE WHEN s.state = 'waiting' THEN s.due + $18 * interval '1 ms' END,
                       CASE WHEN s.state = 'waiting' THEN NULL ELSE now() END,
                       s.asked AND (d.revived OR $16 = 'failed')
                  FROM (SELECT CASE WHEN NOT $15::boolean THEN 'stopped'
                                    WHEN d.retry_requested THEN 'waiting'
                                    WHEN d.revived THEN 'failed'
                                    ELSE $16 END AS state,
                               CASE WHEN d.retry_requested THEN now() ELSE $17::timestamptz END AS due,
                               d.retry_requested AND $15::boolean AS asked) s),
              retry_requested = d.retry_requested AND $15::boolean,
              ${ENDED}
        WHERE ${UNDER_WAY} RETURNING d.id, d.webhook_id, d.state, d.retry_requested AS asked
     ), kept AS (${INSERT_ATTEMPT})
     SELECT state, asked FROM done, kept`,
    [...attemptParameters(record), 'failed', next.live, next.state, next.nextAttemptAt, next.sweepAfterMs],
  )
}

const ENDED = `attempts = $2::int, claims = 0, owner = NULL, lease_until = NULL`

const UNDER_WAY = `d.id = $1 AND d.organisation_id = $3 AND d.attempts = $2::int - 1 AND d.state = 'in_progress'`

const INSERT_ATTEMPT = `INSERT INTO attempt (delivery_id, webhook_id, number, trigger, url, started_at, duration_ms,
         failure_code, status_code, error, response_headers, response_body, response_truncated, outcome)
       SELECT id, webhook_id, $2::int, $4, $5, $6::timestamptz, $7::int,
              $8, $9::int, $10, $11::jsonb, $12, $13::bool, $14 FROM done
       RETURNING number`

/** $1 to $13 of INSERT_ATTEMPT; $14 is the outcome. */
function attemptParameters(record: AttemptRecord): unknown[] {
  return [
    record.deliveryId,
    record.number,
    record.organisationId,
    record.trigger,
    record.url,
    record.startedAt,
    record.durationMs,
    record.failureCode,
    record.statusCode,
    record.error,
    record.response === null ? null : JSON.stringify(record.response.headers),
    record.response?.body ?? null,
    record.response?.truncated ?? false,
  ]
}

import type { AttemptTrigger, FailureCode } from '../../domain/attempt-outcome.ts'
import type { StopReason } from '../../domain/delivery-state.ts'
import { firstRow, type Db } from '../db.ts'
import { preparedRows, type Prepared } from '../prepared.ts'
import type { AttemptKey } from './attempts.ts'
import { UNRESOLVED } from './incidents.ts'

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
  /** Who made it: a failure is recorded only while the row is this owner's. */
  owner: string
  /**
   * It was made by the process that holds the row since the commit, so its row may still say `pending`; or `stopped`,
   * when its webhook was switched off meanwhile: an attempt under way finishes first.
   */
  underLease: boolean
}

/** The webhook for which an attempt of delivery `d` counts. */
const COUNTED_WEBHOOK = `CASE WHEN d.is_test THEN NULL ELSE d.webhook_id END`

/**
 * Whether the success of an inserted `attempt` leaves nothing unresolved while an incident is open. Where none is, it
 * takes one look at the index of open incidents.
 */
const MAY_CLOSE_INCIDENT = `(
  EXISTS (SELECT 1 FROM incident i WHERE i.webhook_id = attempt.webhook_id AND i.closed_at IS NULL)
  AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.webhook_id = attempt.webhook_id AND ${UNRESOLVED}))`

const RECORD_FIRST_SUCCESSES: Prepared = {
  name: 'record_first_successes',
  text: `WITH given AS (
   SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::int[], $7::int[],
                        $8::text[], $9::text[], $10::bool[])
       AS given (id, organisation_id, trigger, url, began_at, duration_ms, status_code, headers, body, truncated)
 ), done AS (
   UPDATE delivery d
      SET state = 'completed', completed_at = now(), stop_reason = NULL, next_attempt_at = NULL, retry_requested = false,
          attempts = 1, claims = 0, owner = NULL, lease_until = NULL,
          sweep_at = CASE WHEN CASE WHEN d.started_at IS NULL THEN $11 ELSE d.state = 'stopped' END THEN now() END
     FROM given g
    WHERE d.id = g.id AND d.organisation_id = g.organisation_id AND d.attempts = 0
      AND d.state IN ('pending', 'in_progress', 'stopped')
   RETURNING g.*, ${COUNTED_WEBHOOK} AS webhook_id
 )
 INSERT INTO attempt (delivery_id, webhook_id, number, trigger, url, started_at, duration_ms, status_code,
                      response_headers, response_body, response_truncated, outcome)
 SELECT id, webhook_id, 1, trigger, url, began_at, duration_ms, status_code, headers::jsonb, body, truncated,
        'succeeded'
   FROM done
 RETURNING delivery_id AS id, ${MAY_CLOSE_INCIDENT} AS "mayCloseIncident"`,
}

/**
 * `isRecorded`: false when an attempt of the delivery is recorded already (`recordSuccess` is for that).
 * `mayCloseIncident`: the webhook has an open incident and nothing unresolved, so the caller has to close it under its
 * lock.
 */
export type FirstSuccess = { isRecorded: boolean; mayCloseIncident: boolean }

/**
 * Records first attempts that succeeded and completes their deliveries, whoever owns them, in one statement that touches
 * nothing else. `follow`: those that have no workflow yet are marked for one.
 */
export async function recordFirstSuccesses(
  db: Db,
  records: readonly AttemptRecord[],
  follow: boolean,
): Promise<FirstSuccess[]> {
  const values = [
    records.map(({ deliveryId }) => deliveryId),
    records.map(({ organisationId }) => organisationId),
    records.map(({ trigger }) => trigger),
    records.map(({ url }) => url),
    records.map(({ startedAt }) => startedAt),
    records.map(({ durationMs }) => durationMs),
    records.map(({ statusCode }) => statusCode),
    records.map(headersJson),
    records.map(({ response }) => response?.body ?? null),
    records.map(({ response }) => response?.truncated ?? false),
    follow,
  ]
  const found = await preparedRows<{ id: string; mayCloseIncident: boolean }>(
    db,
    RECORD_FIRST_SUCCESSES,
    values,
  )
  const written = new Map(found.map(({ id, mayCloseIncident }) => [id, mayCloseIncident]))
  return records.map(({ deliveryId }) => ({
    isRecorded: written.has(deliveryId),
    mayCloseIncident: written.get(deliveryId) === true,
  }))
}

/**
 * Records an attempt that succeeded and completes the delivery, whoever owns it and whatever its state: what a receiver
 * confirmed stays confirmed. A failure that another run recorded under the same number becomes this success. The workflow
 * of a delivery that was at rest is to be told. False when a success of the delivery is recorded already.
 */
export async function recordSuccess(db: Db, record: AttemptRecord): Promise<boolean> {
  const recorded = await firstRow(
    db,
    `WITH done AS (
       UPDATE delivery d
          SET state = 'completed', completed_at = now(), stop_reason = NULL, next_attempt_at = NULL,
              retry_requested = false,
              sweep_at = CASE WHEN d.started_at IS NOT NULL AND d.state <> 'in_progress' THEN now() END,
              attempts = greatest(d.attempts, $2::int), claims = 0, owner = NULL, lease_until = NULL
        WHERE d.id = $1 AND d.organisation_id = $3 AND d.state <> 'completed' RETURNING id, ${COUNTED_WEBHOOK} AS webhook_id
     ) ${INSERT_ATTEMPT}
       ON CONFLICT (delivery_id, number) DO UPDATE
          SET (trigger, url, started_at, duration_ms, failure_code, status_code, error,
               response_headers, response_body, response_truncated, outcome)
            = (excluded.trigger, excluded.url, excluded.started_at, excluded.duration_ms, excluded.failure_code,
               excluded.status_code, excluded.error, excluded.response_headers, excluded.response_body,
               excluded.response_truncated, excluded.outcome)
       RETURNING number`,
    attemptParameters(record, 'succeeded'),
  )
  return recorded !== null
}

/**
 * Records a failed attempt; the delivery becomes `next.state`, or `stopped` where there is a `stopReason`.
 * A retry that a user asked for meanwhile makes it `waiting` for an attempt at once, also where this one would have
 * been the last.
 * `sweepAfterMs` after its next attempt the sweep looks whether its workflow lives; `startAfterMs` after it where it
 * has no workflow yet.
 * The caller has locked the webhook's row, so that a switch-off at the same instant is either seen or waits.
 * `dueInMs`: from the moment when the database gets the statement to the next attempt; null where none follows.
 * Null when the row is not `record.owner`'s any more, or attempt `number` is recorded already.
 */
export async function recordFailure(
  db: Db,
  record: AttemptRecord,
  next: {
    stopReason: StopReason | null
    state: 'waiting' | 'failed'
    dueInMs: number | null
    sweepAfterMs: number
    startAfterMs: number
  },
): Promise<RecordedFailure | null> {
  return firstRow(
    db,
    `WITH done AS (
       UPDATE delivery d
          SET (state, stop_reason, next_attempt_at, sweep_at, completed_at) = (
                SELECT s.state,
                       CASE WHEN s.state = 'stopped' THEN coalesce($17, d.stop_reason) END,
                       CASE WHEN s.state = 'waiting' THEN s.due END,
                       CASE WHEN s.state = 'waiting'
                            THEN s.due + CASE WHEN d.started_at IS NULL THEN $21::float8 ELSE $20::float8 END * interval '1 ms' END,
                       CASE WHEN s.state = 'waiting' THEN NULL ELSE now() END
                  FROM (SELECT CASE WHEN $17::text IS NOT NULL OR d.state = 'stopped' THEN 'stopped'
                                    WHEN d.retry_requested THEN 'waiting'
                                    ELSE $18 END AS state,
                               CASE WHEN d.retry_requested THEN now() ELSE ${dueAt('$19')} END AS due) s),
              retry_requested = d.retry_requested AND $17::text IS NULL,
              attempts = $2::int, claims = 0, owner = NULL, lease_until = NULL
        WHERE ${THIS_ATTEMPT}
       RETURNING d.id, ${COUNTED_WEBHOOK} AS webhook_id, d.state, d.retry_requested AS asked, d.next_attempt_at
     ), kept AS (${INSERT_ATTEMPT} RETURNING number)
     SELECT state, asked, next_attempt_at AS "nextAttemptAt" FROM done, kept`,
    [
      ...attemptParameters(record, 'failed'),
      record.owner,
      record.underLease,
      next.stopReason,
      next.state,
      next.dueInMs,
      next.sweepAfterMs,
      next.startAfterMs,
    ],
  )
}

/** A failed attempt as it was recorded. `asked`: a person asked for the next attempt at once. */
export type RecordedFailure =
  | { state: 'waiting'; asked: boolean; nextAttemptAt: Date }
  | { state: 'failed' | 'stopped'; asked: boolean; nextAttemptAt: null }

/** SQL of the instant so many ms after the statement came, in whole ms, rounded up. */
function dueAt(dueInMs: string): string {
  return `date_trunc('milliseconds', statement_timestamp() + ${dueInMs}::float8 * interval '1 ms' + interval '999 us')`
}

/** The row is still in this attempt, and its owner's ($15); $16: the process that holds it since the commit made it. */
const THIS_ATTEMPT = `d.id = $1 AND d.organisation_id = $3 AND d.attempts = $2::int - 1
   AND (d.state = 'in_progress' AND d.owner = $15::uuid
        OR $16::boolean AND (d.state = 'pending' AND d.owner = $15::uuid OR d.state = 'stopped' AND d.owner IS NULL))`

const INSERT_ATTEMPT = `INSERT INTO attempt (delivery_id, webhook_id, number, trigger, url, started_at, duration_ms,
         failure_code, status_code, error, response_headers, response_body, response_truncated, outcome)
       SELECT id, webhook_id, $2::int, $4, $5, $6::timestamptz, $7::int,
              $8, $9::int, $10, $11::jsonb, $12, $13::bool, $14 FROM done`

/** $1 to $14 of the statements above. */
function attemptParameters(record: AttemptRecord, outcome: 'succeeded' | 'failed'): unknown[] {
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
    headersJson(record),
    record.response?.body ?? null,
    record.response?.truncated ?? false,
    outcome,
  ]
}

function headersJson({ response }: AttemptRecord): string | null {
  return response === null ? null : JSON.stringify(response.headers)
}

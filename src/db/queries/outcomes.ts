// Hand-written: one statement records any number of attempts and moves their deliveries on.
import type { AttemptTrigger, FailureCode } from '../../domain/attempt-outcome.ts'
import { sql, type Db } from '../db.ts'
import type { AttemptKey } from './claims.ts'
import { hasUnresolvedSql } from './incidents.ts'
import { stopReasonSql } from './webhooks.ts'

/** One ended attempt, as it is stored. */
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
   * It was made by the process that has leased the row since the commit, so its row may still be `pending`; or
   * `stopped`, if its webhook was switched off meanwhile: an attempt under way finishes first.
   */
  underLease: boolean
}

/** The webhook for which an attempt of delivery `d` counts. */
const COUNTED_WEBHOOK = `CASE WHEN d.is_test THEN NULL ELSE d.webhook_id END`

/** SQL of the ended attempts, one array for each column, further `columns` with their `arrays`, and their `place`. */
function givenSql(arrays = '', columns = ''): string {
  return `SELECT * FROM unnest(:ids::uuid[], :organisationIds::text[], :numbers::int[], :triggers::text[], :urls::text[],
            :startedAts::timestamptz[], :durations::int[], :failureCodes::text[], :statusCodes::int[], :errors::text[],
            :headers::text[], :bodies::text[], :truncated::bool[]${arrays})
    WITH ORDINALITY AS given (id, organisation_id, number, trigger, url, began_at, duration_ms,
              failure_code, status_code, error, headers, body, truncated${columns}, place)`
}

/** The parameters of `givenSql`. */
function givenValues(records: readonly AttemptRecord[]): Record<string, unknown[]> {
  return {
    ids: records.map(({ deliveryId }) => deliveryId),
    organisationIds: records.map(({ organisationId }) => organisationId),
    numbers: records.map(({ number }) => number),
    triggers: records.map(({ trigger }) => trigger),
    urls: records.map(({ url }) => url),
    startedAts: records.map(({ startedAt }) => startedAt),
    durations: records.map(({ durationMs }) => durationMs),
    failureCodes: records.map(({ failureCode }) => failureCode),
    statusCodes: records.map(({ statusCode }) => statusCode),
    errors: records.map(({ error }) => error),
    headers: records.map(({ response }) => (response === null ? null : JSON.stringify(response.headers))),
    bodies: records.map(({ response }) => response?.body ?? null),
    truncated: records.map(({ response }) => response?.truncated ?? false),
  }
}

/** SQL that inserts the attempts of `done`: given ones, with the `webhook_id` for which they count. */
function insertSql(outcome: 'succeeded' | 'failed'): string {
  return `INSERT INTO attempt (delivery_id, webhook_id, number, trigger, url, started_at, duration_ms,
           failure_code, status_code, error, response_headers, response_body, response_truncated, outcome)
    SELECT id, webhook_id, number, trigger, url, began_at, duration_ms,
           failure_code, status_code, error, headers::jsonb, body, truncated, '${outcome}' FROM done`
}

/**
 * A success of delivery `d` would close an incident: one is open, and nothing is unresolved. Where none is open, only
 * the index of open incidents is read.
 */
const CLOSES_INCIDENT = `(NOT d.is_test
  AND EXISTS (SELECT 1 FROM incident i WHERE i.webhook_id = d.webhook_id AND i.closed_at IS NULL)
  AND NOT ${hasUnresolvedSql('d.webhook_id')})`

const RECORD_FIRST_SUCCESSES = {
  name: 'record_first_successes',
  text: `WITH given AS (${givenSql()}), done AS (
    UPDATE delivery d
       SET state = 'completed', completed_at = now(), stop_reason = NULL, next_attempt_at = NULL, retry_requested = false,
           attempts = 1, claims = 0, owner = NULL, lease_until = NULL, paused_since = NULL,
           sweep_at = CASE WHEN CASE WHEN d.started_at IS NULL THEN :hasBackfill::boolean ELSE d.state = 'stopped' END THEN now() END
      FROM given g
     WHERE d.id = g.id AND d.organisation_id = g.organisation_id AND d.attempts = 0
       AND d.state IN ('pending', 'in_progress', 'stopped') AND NOT ${CLOSES_INCIDENT}
    RETURNING g.*, ${COUNTED_WEBHOOK} AS webhook_id
  ), inserted AS (${insertSql('succeeded')})
  SELECT done.place::int AS place FROM done`,
}

/**
 * Records first attempts that succeeded and completes their deliveries, whatever their owner, in one statement that
 * takes no lock of a webhook. `hasBackfill`: those that have no workflow yet are marked for one. Returns for each
 * whether it was recorded. It was not (`recordSuccesses` records it) if an attempt of the delivery is recorded already,
 * or if it closes an incident.
 */
export async function recordFirstSuccesses(
  db: Db,
  records: readonly AttemptRecord[],
  hasBackfill: boolean,
): Promise<boolean[]> {
  const recorded = await record(db, RECORD_FIRST_SUCCESSES, records, { hasBackfill })
  return recorded.map((success) => success !== null)
}

/** Returns for each record what was recorded of it, or null: of two runs of one delivery only one is recorded. */
async function record<Recorded>(
  db: Db,
  statement: { name: string; text: string },
  records: readonly AttemptRecord[],
  further: Record<string, unknown>,
): Promise<(Recorded | null)[]> {
  if (records.length === 0) return []
  const { name, text } = statement
  const run = sql(text, { ...givenValues(records), ...further })
  const recorded = await run.preparedRows<Recorded & { place: number }>(db, name)
  const byPlace = new Map<number, Recorded>(recorded.map((row) => [row.place, row]))
  return records.map((_, index) => byPlace.get(index + 1) ?? null)
}

const RECORD_SUCCESSES = {
  name: 'record_successes',
  text: `WITH given AS (${givenSql()}), done AS (
    UPDATE delivery d
       SET state = 'completed', completed_at = now(), stop_reason = NULL, next_attempt_at = NULL, retry_requested = false,
           attempts = greatest(d.attempts, g.number), claims = 0, owner = NULL, lease_until = NULL, paused_since = NULL,
           sweep_at = CASE WHEN CASE WHEN d.started_at IS NULL THEN :hasBackfill::boolean AND d.attempts = 0
                                     ELSE d.state <> 'in_progress' END THEN now() END
      FROM given g
     WHERE d.id = g.id AND d.organisation_id = g.organisation_id AND d.state <> 'completed'
    RETURNING g.*, ${COUNTED_WEBHOOK} AS webhook_id
  ), inserted AS (${insertSql('succeeded')}
    ON CONFLICT (delivery_id, number) DO UPDATE
       SET (trigger, url, started_at, duration_ms, failure_code, status_code, error,
            response_headers, response_body, response_truncated, outcome)
         = (excluded.trigger, excluded.url, excluded.started_at, excluded.duration_ms, excluded.failure_code,
            excluded.status_code, excluded.error, excluded.response_headers, excluded.response_body,
            excluded.response_truncated, excluded.outcome))
  SELECT done.place::int AS place, 'completed' AS state, done.webhook_id IS NOT NULL AS "isCounted" FROM done`,
}

/** `isCounted`: the delivery is not a test event, so its success may close the incident. */
export type RecordedSuccess = { state: 'completed'; isCounted: boolean }

/**
 * Records attempts that succeeded and completes their deliveries, whatever their owner and state: a delivery that its
 * receiver confirmed stays confirmed. A failure that another run recorded under the same number becomes this success.
 * The workflow of a delivery that was at rest is to be signalled. `hasBackfill` as above. Returns for each what was
 * recorded: null where a success is recorded already.
 */
export function recordSuccesses(
  db: Db,
  records: readonly AttemptRecord[],
  hasBackfill: boolean,
): Promise<(RecordedSuccess | null)[]> {
  return record(db, RECORD_SUCCESSES, records, { hasBackfill })
}

/** An attempt, and what follows it where its webhook still takes such deliveries. */
export type EndedAttempt = AttemptRecord & {
  /**
   * Next state of the delivery. A failed one becomes `waiting` in any case if a user has requested a retry meanwhile.
   */
  next: 'completed' | 'waiting' | 'failed'
  /** From the moment when the database gets the statement to the next attempt; null where none follows. */
  dueInMs: number | null
  /** After its next attempt, the sweeper recovers a delivery with a workflow after this time, */
  sweepAfterMs: number
  /** and one without a workflow after this time. */
  startAfterMs: number
}

/**
 * A failed attempt as it was recorded. `retryRequested`: a user requested the next attempt at once. `changesIncident`:
 * an incident is to be opened, or the workflow of the open one signalled.
 */
export type RecordedFailure = { retryRequested: boolean; changesIncident: boolean } & (
  { state: 'waiting'; nextAttemptAt: Date } | { state: 'failed' | 'stopped'; nextAttemptAt: null }
)

/** The row is still in this attempt, and its owner's. */
const IS_THIS_ATTEMPT = `d.id = f.id AND d.organisation_id = f.organisation_id AND d.attempts = f.number - 1
      AND (d.state = 'in_progress' AND d.owner = f.owner
           OR f.under_lease AND (d.state = 'pending' AND d.owner = f.owner OR d.state = 'stopped' AND d.owner IS NULL))`

/** The instant so many ms after the statement came, in whole ms, rounded up. */
const DUE_AT = `date_trunc('milliseconds', statement_timestamp() + f.due_in_ms * interval '1 ms' + interval '999 us')`

const RECORD_FAILURES = {
  name: 'record_failures',
  text: `WITH given AS (${givenSql(
    `, :owners::uuid[], :underLease::bool[], :next::text[],
      :dueInMs::float8[], :sweepAfterMs::float8[], :startAfterMs::float8[]`,
    ', owner, under_lease, next, due_in_ms, sweep_after_ms, start_after_ms',
  )}), failed AS (
    SELECT g.*, CASE WHEN d.is_test THEN 'test_failed' ELSE ${stopReasonSql('e.key')} END AS stop_reason
      FROM given g JOIN delivery d ON d.id = g.id JOIN event e ON e.id = d.event_id JOIN webhook w ON w.id = d.webhook_id
  ), done AS (
    UPDATE delivery d
       SET (state, stop_reason, next_attempt_at, sweep_at, completed_at) = (
             SELECT s.state,
                    CASE WHEN s.state = 'stopped' THEN coalesce(f.stop_reason, d.stop_reason) END,
                    CASE WHEN s.state = 'waiting' THEN s.due END,
                    CASE WHEN s.state = 'waiting'
                         THEN s.due + CASE WHEN d.started_at IS NULL THEN f.start_after_ms ELSE f.sweep_after_ms END
                                      * interval '1 ms' END,
                    CASE WHEN s.state = 'waiting' THEN NULL ELSE now() END
               FROM (SELECT CASE WHEN f.stop_reason IS NOT NULL OR d.state = 'stopped' THEN 'stopped'
                                 WHEN d.retry_requested THEN 'waiting'
                                 ELSE f.next END AS state,
                            CASE WHEN d.retry_requested THEN now() ELSE ${DUE_AT} END AS due) s),
           retry_requested = d.retry_requested AND f.stop_reason IS NULL,
           attempts = f.number, claims = 0, owner = NULL, lease_until = NULL, paused_since = NULL
      FROM failed f
     WHERE ${IS_THIS_ATTEMPT}
    RETURNING f.*, ${COUNTED_WEBHOOK} AS webhook_id, d.state, d.retry_requested, d.next_attempt_at
  ), inserted AS (${insertSql('failed')})
  SELECT done.place::int AS place, done.state, done.retry_requested AS "retryRequested", done.next_attempt_at AS "nextAttemptAt",
         done.stop_reason IS NULL AND (i.id IS NULL OR i.resting OR done.state = 'failed' AND i.exhausted_at IS NULL)
           AS "changesIncident"
    FROM done LEFT JOIN incident i ON i.webhook_id = done.webhook_id AND i.closed_at IS NULL`,
}

/**
 * Records failed attempts of one webhook, in one statement. A delivery that its webhook does not take any more, and a
 * test event, becomes `stopped`. The caller holds the lock of the webhook, so that a switch-off at the same instant is
 * either seen or waits. Returns for each what was recorded: null where the row is not its `owner`'s any more, or the
 * attempt is recorded already.
 */
export function recordFailures(
  db: Db,
  attempts: readonly EndedAttempt[],
): Promise<(RecordedFailure | null)[]> {
  return record(db, RECORD_FAILURES, attempts, {
    owners: attempts.map(({ owner }) => owner),
    underLease: attempts.map(({ underLease }) => underLease),
    next: attempts.map(({ next }) => next),
    dueInMs: attempts.map(({ dueInMs }) => dueInMs),
    sweepAfterMs: attempts.map(({ sweepAfterMs }) => sweepAfterMs),
    startAfterMs: attempts.map(({ startAfterMs }) => startAfterMs),
  })
}

import type { Db } from '../../db/connection/db.ts'
import type { Attempt } from '../../db/entities/delivery.ts'
import { TIMEOUT_CODES } from '../../domain/attempt-outcome.ts'
import type { AttemptKey } from './claim.ts'
import { loadSql, type ProtocolStatement } from './load-sql.ts'
import { START_SWEEP_DELAY_MS, SWEEP_DELAY_MS, TIMEOUT_SWEEP_DELAY_MS } from './sweep.ts'

const FIRST_SUCCESS = loadSql('record-first-success')
const SUCCESS = loadSql('record-success')
const FAILURE = loadSql('record-failure')

/** One ended attempt, as it is stored. */
export type AttemptRecord = AttemptKey &
  Pick<Attempt, 'trigger' | 'url' | 'startedAt' | 'durationMs' | 'failureCode' | 'statusCode' | 'error'> & {
    response: { headers: Record<string, string>; body: string; truncated: boolean } | null
    /** The run that made it. */
    owner: string
  }

/**
 * Whether a delivery that ends without a workflow is owed one that follows (`overflow`): after so many ms, or null where
 * it is not.
 */
export type FollowAfter = number | null

function givenValues(records: readonly AttemptRecord[]): Record<string, unknown> {
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

/** Returns for each record what was recorded of it, or null: of two runs of one delivery only one is recorded. */
async function record<Recorded>(
  db: Db,
  statement: ProtocolStatement,
  records: readonly AttemptRecord[],
  further: Record<string, unknown>,
): Promise<(Recorded | null)[]> {
  if (records.length === 0) return []
  const recorded = await statement
    .with({ ...givenValues(records), ...further })
    .preparedRows<Recorded & { place: number }>(db, statement.name)
  const byPlace = new Map<number, Recorded>(recorded.map((row) => [row.place, row]))
  return records.map((_, index) => byPlace.get(index + 1) ?? null)
}

/**
 * Records first attempts that succeeded, without a lock. Returns for each whether it was recorded: it was not, and
 * `recordSuccesses` records it, if an attempt of the delivery is recorded already or it may close an incident.
 */
export async function recordFirstSuccesses(
  db: Db,
  records: readonly AttemptRecord[],
  followAfterMs: FollowAfter,
): Promise<boolean[]> {
  const recorded = await record(db, FIRST_SUCCESS, records, { followAfterMs })
  return recorded.map((success) => success !== null)
}

/** `isCounted`: the delivery is not a test event, so its success may close the incident. */
export type RecordedSuccess = { isCounted: boolean }

/**
 * Records attempts of one webhook that succeeded; the caller holds its lock. Returns for each what was recorded: null
 * where the delivery is completed already.
 */
export function recordSuccesses(
  db: Db,
  records: readonly AttemptRecord[],
  followAfterMs: FollowAfter,
): Promise<(RecordedSuccess | null)[]> {
  return record(db, SUCCESS, records, { followAfterMs })
}

/** An attempt that failed, and what follows it where its webhook still takes such deliveries. */
export type FailedAttempt = AttemptRecord & {
  next: 'waiting' | 'failed'
  /** From the moment when the database gets the statement to the next attempt; null where none follows. */
  dueInMs: number | null
}

/**
 * A failed attempt as it was recorded. `changesIncident`: an incident is to be opened, or the workflow of the open one
 * signalled. `isErased`: the delivery was stopped since its payload is erased, after an earlier failure, which may close
 * the incident.
 */
export type RecordedFailure = { changesIncident: boolean; isErased: boolean } & (
  | { state: 'waiting'; dueAt: Date; dueInMs: number }
  | { state: 'failed' | 'stopped'; dueAt: null; dueInMs: null }
)

/**
 * Records attempts of one webhook that failed; the caller holds its lock. Returns for each what was recorded: null where
 * the run does not own the row any more.
 */
export function recordFailures(
  db: Db,
  attempts: readonly FailedAttempt[],
  followAfterMs: FollowAfter,
): Promise<(RecordedFailure | null)[]> {
  return record(db, FAILURE, attempts, {
    owners: attempts.map(({ owner }) => owner),
    next: attempts.map(({ next }) => next),
    dueInMs: attempts.map(({ dueInMs }) => dueInMs),
    sweepDelayMs: SWEEP_DELAY_MS,
    timeoutCodes: TIMEOUT_CODES,
    timeoutSweepDelayMs: TIMEOUT_SWEEP_DELAY_MS,
    startSweepDelayMs: START_SWEEP_DELAY_MS,
    followAfterMs,
  })
}

import { findStanding, type Claim } from '../../db/queries/attempts.ts'
import { recordFailure, recordSuccess, type AttemptRecord } from '../../db/queries/outcomes.ts'
import { isTimeout, stateAfterAttempt, type AttemptOutcome } from '../../domain/attempt-outcome.ts'
import { TEST_EVENT_KEY } from '../../domain/permissions.ts'
import { waitAfterAttempt } from '../../domain/retry-schedule.ts'
import type { IncidentLabel } from '../../domain/workflow-labels.ts'
import { closeIfResolved, recordInIncident, resolve, type Changed } from '../../incidents/change-incident.ts'
import type { AttemptDependencies, AttemptRequest } from './attempt-request.ts'
import type { Sent } from './send-signed.ts'
import { recordedOutcome } from './recorded-outcome.ts'
import { START_AGAIN_AFTER_MS, SWEEP_AFTER_MS, SWEEP_SLOW_AFTER_MS } from '../lease-times.ts'
import { untilRecorded } from './until-recorded.ts'

/** When the sweeper looks after a retry that is late: one of a hanging endpoint waits for others of the same. */
const AFTER_FAILURE = { sweepAfterMs: SWEEP_AFTER_MS, startAfterMs: START_AGAIN_AFTER_MS }
const AFTER_TIMEOUT = { sweepAfterMs: SWEEP_SLOW_AFTER_MS, startAfterMs: SWEEP_SLOW_AFTER_MS }

type RecordDependencies = Pick<
  AttemptDependencies,
  'dataSource' | 'logger' | 'metrics' | 'locks' | 'recordFirstSuccess'
>

/** What became of the delivery, and the incident whose workflow is to be signalled. */
export type RecordedOutcome = { outcome: AttemptOutcome; tell: IncidentLabel | null }

/** The row as the run holds it. `underLease`: `owner` is the process that has it since its commit. */
export type HeldClaim = { claim: Claim; owner: string; underLease: boolean }

/**
 * Writes the attempt and the delivery's new state, and returns what became of it. The POST is over: this goes on until
 * the database takes its outcome, whatever it says meanwhile.
 * A success is recorded whoever owns the row; where another run recorded one first, that stands and is returned.
 * A failure is recorded only while `owner` has the row. Null where it has not: the failure does not count.
 */
export async function recordOutcome(
  dependencies: RecordDependencies,
  request: AttemptRequest,
  { claim, owner, underLease }: HeldClaim,
  sent: Sent,
): Promise<RecordedOutcome | null> {
  const { result } = sent
  const durationMs = Math.round(result.durationMs)
  const trigger = claim.asked ? 'retry' : 'schedule'
  const { organisationId, deliveryId, number } = request
  const { webhookId, eventKey, url } = claim
  const { succeeded, startedAt, failureCode, statusCode, error, response } = result
  // Field by field, as below: spreading objects of so many shapes took a tenth of a delivery's time.
  const record = {
    organisationId,
    deliveryId,
    webhookId,
    eventKey,
    number,
    trigger,
    url,
    startedAt,
    durationMs,
    failureCode,
    statusCode,
    error,
    response,
    owner,
    underLease,
  } as const
  const { logger, metrics } = dependencies
  const { outcome, isNew, tell } = await insist(dependencies, record, () => write(dependencies, record, sent))
  if (outcome === null) {
    metrics.attemptSuperseded()
    logger.warn(
      { event: 'attempt.superseded', organisationId, webhookId, deliveryId, attempt: number, failureCode },
      'attempt.superseded',
    )
    return null
  }
  // How long after its time a retry was begun.
  const lateMs = request.hold === null ? null : startedAt.getTime() - request.hold.untilMs
  if (isNew && outcome.state !== 'deferred') {
    // That of a slow endpoint may have waited for others of the same.
    const isFirst = number === 1 && request.kind !== 'slow'
    metrics.attemptRecorded({
      succeeded,
      failureCode,
      trigger,
      durationMs: result.durationMs,
      state: outcome.state,
      firstDelayMs: isFirst ? claim.ageMs : null,
      latenessMs: lateMs,
    })
  }
  logger.info(
    {
      event: 'delivery.attempted',
      organisationId,
      webhookId,
      deliveryId,
      eventKey,
      attempt: number,
      state: outcome.state,
      statusCode,
      failureCode,
      durationMs,
      lateMs,
    },
    'delivery.attempted',
  )
  return { outcome, tell }
}

function insist<T>(
  { logger, metrics }: RecordDependencies,
  { deliveryId }: AttemptRecord,
  record: () => Promise<T>,
): Promise<T> {
  return untilRecorded(record, { logger, deliveryId, onError: () => metrics.attemptNotRecorded() })
}

/**
 * What is recorded, whether by this run of the attempt, and the incident that it opened, exhausted or closed. The outcome
 * is null where nothing is to be recorded.
 */
type Written = { outcome: AttemptOutcome | null; isNew: boolean; tell: IncidentLabel | null }

type AttemptOf = AttemptRecord & { webhookId: string; eventKey: string }

async function write(
  dependencies: RecordDependencies,
  record: AttemptOf,
  { result, endedAtMs }: Sent,
): Promise<Written> {
  const { dataSource } = dependencies
  const { number: attempts, failureCode, statusCode } = record
  const state = stateAfterAttempt(result.succeeded, attempts)
  if (state === 'completed') {
    const { result: recorded, tell } = await writeSuccess(dependencies, record)
    if (recorded) return { outcome: { state, attempts, failureCode, statusCode }, isNew: true, tell }
    const standing = await findStanding(dataSource, record)
    return { outcome: recordedOutcome(standing, attempts), isNew: false, tell }
  }
  const waitMs = waitAfterAttempt(attempts)
  const sinceEndMs = (): number => performance.now() - endedAtMs
  const { result: written, tell } = await writeFailure(dependencies, record, () => ({
    state,
    // Asked when the statement goes out: its time counts from the end of the POST.
    dueInMs: waitMs === null ? null : waitMs - sinceEndMs(),
    ...(isTimeout(failureCode) ? AFTER_TIMEOUT : AFTER_FAILURE),
  }))
  if (written === null) return { outcome: null, isNew: false, tell }
  if (written.state !== 'waiting') {
    return { outcome: { state: written.state, attempts, failureCode, statusCode }, isNew: true, tell }
  }
  const outcome: AttemptOutcome = {
    state: 'waiting',
    attempts,
    endedAtMs: written.nextAttemptAt.getTime() - (waitMs ?? 0),
    sinceEndMs: sinceEndMs(),
    immediately: written.asked,
    failureCode,
    statusCode,
  }
  return { outcome, isNew: true, tell }
}

/** A test event is stopped by its failure, and opens no incident. */
async function writeFailure(
  { dataSource, locks }: RecordDependencies,
  record: AttemptOf,
  next: () => Omit<Parameters<typeof recordFailure>[2], 'stopReason'>,
): Promise<Changed<Awaited<ReturnType<typeof recordFailure>>>> {
  if (record.eventKey === TEST_EVENT_KEY) {
    const result = await recordFailure(dataSource, record, { ...next(), stopReason: 'test_failed' })
    return { result, tell: null }
  }
  return locks.failing.take(record.webhookId, () =>
    recordInIncident(dataSource, record, (manager, stopReason) =>
      recordFailure(manager, record, { ...next(), stopReason }),
    ),
  )
}

/**
 * A success at the first attempt is one statement, shared with others of the same instant. Only where that finds an
 * open incident with nothing unresolved, a second step closes it under its lock. A later success may always close it. So may a
 * first one that another run has recorded as failed.
 */
async function writeSuccess(dependencies: RecordDependencies, record: AttemptOf): Promise<Changed<boolean>> {
  const { dataSource, locks } = dependencies
  if (record.number === 1) {
    const { isRecorded, mayCloseIncident } = await dependencies.recordFirstSuccess(record)
    const close = (): Promise<IncidentLabel | null> =>
      locks.resolving.take(record.webhookId, () => closeIfResolved(dataSource, record.webhookId))
    if (isRecorded)
      return { result: true, tell: mayCloseIncident ? await insist(dependencies, record, close) : null }
  }
  // A test event resolves nothing, however late it succeeds.
  if (record.eventKey === TEST_EVENT_KEY)
    return { result: await recordSuccess(dataSource, record), tell: null }
  return locks.resolving.take(record.webhookId, () =>
    resolve(dataSource, record.webhookId, (manager) => recordSuccess(manager, record)),
  )
}

import { findStanding, type Claim } from '../db/queries/attempts.ts'
import type { IncidentLabel } from '../db/queries/incidents.ts'
import { recordFailure, recordSuccess, type AttemptRecord } from '../db/queries/outcomes.ts'
import { nextAttemptAt, stateAfterAttempt, type AttemptOutcome } from '../domain/attempt-outcome.ts'
import { TEST_EVENT_KEY } from '../domain/permissions.ts'
import { closeIfResolved, recordInIncident, resolve, type Changed } from '../incidents/change-incident.ts'
import { tellOfIncident } from '../incidents/tell.ts'
import type { AttemptDependencies, AttemptRequest } from './attempt-request.ts'
import { untilDatabaseAnswers } from '../db/patience.ts'
import type { Sent } from './send-signed.ts'
import { standingOutcome } from './standing-outcome.ts'
import { START_AGAIN_AFTER_MS, SWEEP_AFTER_MS } from './timing.ts'

type RecordDependencies = Pick<
  AttemptDependencies,
  'dataSource' | 'logger' | 'metrics' | 'incidentWorkflows' | 'turns' | 'recordFirstSuccess'
>

/**
 * Writes the attempt and the delivery's new state, and says what became of it. Once a POST was made its outcome is
 * worth waiting for: this goes on until the database takes it.
 * When another run recorded the same attempt first, that record stands and is returned.
 * `underLease`: the attempt was made under the lease of the commit.
 */
export async function recordOutcome(
  dependencies: RecordDependencies,
  request: AttemptRequest,
  claim: Claim,
  sent: Sent,
  underLease: boolean,
): Promise<AttemptOutcome> {
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
    underLease,
  } as const
  const { outcome, isNew, tell } = await untilDatabaseAnswers(() => write(dependencies, record, sent))
  // How long after its time a retry was begun.
  const lateMs = request.hold === null ? null : startedAt.getTime() - request.hold.untilMs
  if (isNew && outcome.state !== 'deferred') {
    const isFirst = number === 1 && request.turnedAway !== true
    dependencies.metrics.attemptRecorded({
      succeeded,
      failureCode,
      trigger,
      durationMs: result.durationMs,
      state: outcome.state,
      firstDelayMs: isFirst ? claim.ageMs : null,
      latenessMs: lateMs,
    })
  }
  dependencies.logger.info(
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
  await tellOfIncident(dependencies, tell)
  return outcome
}

/** What is recorded, whether by this run of the attempt, and the incident that it opened, exhausted or closed. */
type Written = { outcome: AttemptOutcome; isNew: boolean; tell: IncidentLabel | null }

type AttemptOf = AttemptRecord & { webhookId: string; eventKey: string }

async function write(
  dependencies: RecordDependencies,
  record: AttemptOf,
  { result, endedAtMs }: Sent,
): Promise<Written> {
  const { dataSource } = dependencies
  const { number: attempts, failureCode, statusCode } = record
  const state = stateAfterAttempt(result.succeeded, attempts)
  const standing = async (tell: IncidentLabel | null): Promise<Written> => {
    const outcome = standingOutcome(await findStanding(dataSource, record), attempts)
    return { outcome, isNew: false, tell }
  }
  if (state === 'completed') {
    const { result: recorded, tell } = await writeSuccess(dependencies, record)
    if (!recorded) return standing(tell)
    return { outcome: { state, attempts, failureCode, statusCode }, isNew: true, tell }
  }
  const dueAtMs = nextAttemptAt(endedAtMs, attempts)
  const next = {
    state,
    nextAttemptAt: dueAtMs === null ? null : new Date(dueAtMs),
    sweepAfterMs: SWEEP_AFTER_MS,
    startAfterMs: START_AGAIN_AFTER_MS,
  }
  const { result: written, tell } = await writeFailure(dependencies, record, next)
  if (written === null) return standing(tell)
  if (written.state !== 'waiting') {
    return { outcome: { state: written.state, attempts, failureCode, statusCode }, isNew: true, tell }
  }
  const outcome: AttemptOutcome = {
    state: 'waiting',
    attempts,
    endedAtMs,
    sinceEndMs: Date.now() - endedAtMs,
    immediately: written.asked,
    failureCode,
    statusCode,
  }
  return { outcome, isNew: true, tell }
}

/** A test event is stopped by its failure, and opens no incident. */
async function writeFailure(
  { dataSource, turns }: RecordDependencies,
  record: AttemptOf,
  next: Omit<Parameters<typeof recordFailure>[2], 'stopReason'>,
): Promise<Changed<Awaited<ReturnType<typeof recordFailure>>>> {
  if (record.eventKey === TEST_EVENT_KEY) {
    const result = await recordFailure(dataSource, record, { ...next, stopReason: 'test_failed' })
    return { result, tell: null }
  }
  return turns.failing.take(record.webhookId, () =>
    recordInIncident(dataSource, record, (manager, stopReason) =>
      recordFailure(manager, record, { ...next, stopReason }),
    ),
  )
}

/**
 * A success at the first attempt is one statement, shared with others of the same instant. Only where that finds an
 * open incident with nothing unresolved, a second step closes it under its lock. A later success may always close it.
 */
async function writeSuccess(
  { dataSource, turns, recordFirstSuccess }: RecordDependencies,
  record: AttemptOf,
): Promise<Changed<boolean>> {
  if (record.number === 1) {
    const { isRecorded, mayCloseIncident } = await recordFirstSuccess(record)
    if (!mayCloseIncident) return { result: isRecorded, tell: null }
    const close = (): Promise<IncidentLabel | null> => closeIfResolved(dataSource, record.webhookId)
    const tell = await turns.resolving.take(record.webhookId, () => untilDatabaseAnswers(close))
    return { result: isRecorded, tell }
  }
  return turns.resolving.take(record.webhookId, () =>
    resolve(dataSource, record.webhookId, (manager) => recordSuccess(manager, record)),
  )
}

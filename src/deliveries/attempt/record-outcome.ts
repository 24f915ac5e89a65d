import type { DataSource } from 'typeorm'
import { findDeliveryStatus } from '../../db/queries/deliveries.ts'
import { stateAfterAttempt, type RowOutcome, type AttemptRequest } from '../../domain/attempt-outcome.ts'
import { waitAfterAttempt } from '../../domain/retry-schedule.ts'
import type { IncidentLabel } from '../../domain/workflow-inputs.ts'
import type { Logger } from '../../observability/logger.ts'
import type { Metrics } from '../../observability/metrics.ts'
import type { Claim } from '../protocol/claim.ts'
import { type AttemptRecord, recordFirstSuccesses, type FollowAfter } from '../protocol/record-attempts.ts'
import type { RecordUnderLock } from './record-under-lock.ts'
import type { Sent } from './send-signed.ts'
import { outcomeOfRow } from './claim-attempt.ts'
import { untilRecorded } from './unrecorded-outcomes.ts'
import { createBatchedStatement, type BatchedStatement } from '../../db/connection/database-queues.ts'

type RecordDependencies = {
  dataSource: DataSource
  logger: Logger
  metrics: Metrics
  recordFirstSuccess: RecordFirstSuccess
  recordUnderLock: RecordUnderLock
}

/** The recorded outcome, and the incident whose workflow is to be signalled. */
type RecordedOutcome = { outcome: RowOutcome; toSignal: IncidentLabel | null }

/**
 * Writes the attempt and the delivery's new state, and repeats this until the database accepts it.
 * A success is recorded whatever the owner of the row; where another run recorded one before, that is returned.
 * A failure is recorded only while this run owns the row; otherwise it does not count, and null is returned.
 */
export async function recordOutcome(
  dependencies: RecordDependencies,
  request: AttemptRequest,
  claim: Claim,
  sent: Sent,
): Promise<RecordedOutcome | null> {
  const { result } = sent
  const durationMs = Math.round(result.durationMs)
  const trigger = claim.isRequested ? 'retry' : 'schedule'
  const { organisationId, deliveryId, number } = request
  const { webhookId, eventKey, traceId, url, owner } = claim
  const { succeeded, startedAt, failureCode, statusCode, error, response } = result
  // Not spread, here and below: spreading objects of so many shapes took a tenth of a delivery's time.
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
  } as const
  const { logger, metrics } = dependencies
  const { outcome, isNew, toSignal } = await untilRecorded(
    () => write(dependencies, record, sent),
    dependencies,
    deliveryId,
  )
  if (outcome === null) {
    metrics.attemptSuperseded()
    const ids = { organisationId, webhookId, deliveryId, traceId }
    logger.warn({ event: 'attempt.superseded', ...ids, attempt: number, failureCode })
    return null
  }
  const lateMs = claim.isRequested || request.dueAtMs === null ? null : startedAt.getTime() - request.dueAtMs
  if (isNew) {
    // At a slow endpoint the delay is that of the deliveries before it.
    const isFirst = number === 1 && request.queue !== 'slow'
    const postedAtMs = sent.endedAtMs - result.durationMs
    metrics.attemptRecorded({
      succeeded,
      failureCode,
      trigger,
      durationMs: result.durationMs,
      state: outcome.state,
      firstDelayMs: isFirst ? claim.ageMs + postedAtMs - claim.claimedAtMs : null,
      latenessMs: lateMs,
    })
  }
  logger.info({
    event: 'delivery.attempted',
    organisationId,
    webhookId,
    deliveryId,
    eventKey,
    traceId,
    attempt: number,
    state: outcome.state,
    statusCode,
    failureCode,
    durationMs,
    lateMs,
  })
  return { outcome, toSignal }
}

/** `outcome` is null where nothing is to be recorded. `isNew`: this run recorded it. */
type Written = { outcome: RowOutcome | null; isNew: boolean; toSignal: IncidentLabel | null }

/**
 * Records a success at the first attempt without a lock, in one statement shared with others of the same instant. Any
 * other attempt may change the incident, and is recorded under the lock of its webhook: a failure, and a success that
 * leaves nothing unresolved while an incident is open, of a later attempt, or that another run has recorded as failed.
 */
async function write(
  { dataSource, recordFirstSuccess, recordUnderLock }: RecordDependencies,
  record: AttemptRecord & { webhookId: string },
  { result, endedAtMs }: Sent,
): Promise<Written> {
  const { number: attempts, failureCode, statusCode } = record
  const next = stateAfterAttempt(result.succeeded, attempts)
  if (next === 'completed' && attempts === 1 && (await recordFirstSuccess(record)))
    return { outcome: { state: next, attempts, failureCode, statusCode }, isNew: true, toSignal: null }

  const waitMs = waitAfterAttempt(attempts)
  const { result: recorded, toSignal } = await recordUnderLock({
    ...record,
    next,
    // The wait counts from the end of the POST.
    dueInMs: () => (waitMs === null ? null : waitMs - (performance.now() - endedAtMs)),
  })
  if (recorded === null && next !== 'completed') return { outcome: null, isNew: false, toSignal }
  if (recorded === null) {
    const status = await findDeliveryStatus(dataSource, record)
    return { outcome: outcomeOfRow(status, attempts), isNew: false, toSignal }
  }
  const codes = { failureCode, statusCode }
  if (!('state' in recorded))
    return { outcome: { state: 'completed', attempts, ...codes }, isNew: true, toSignal }
  const { state, dueAt, dueInMs } = recorded
  const outcome: RowOutcome =
    state === 'waiting'
      ? { state, attempts, dueAtMs: dueAt.getTime(), dueInMs, ...codes }
      : { state, attempts, ...codes }
  return { outcome, isNew: true, toSignal }
}

/** Records a first attempt that succeeded. False if that takes the lock of its webhook, or another one is recorded. */
export type RecordFirstSuccess = BatchedStatement<AttemptRecord, boolean>

/** Statements in flight at once, and successes of one statement, at most. */
const MAX_CONCURRENT_BATCHES = 4
const MAX_BATCH_SIZE = 100

/**
 * How long a success waits for others, so that they share a commit and the publishers' commits go first. For so much
 * longer the POST would be made again if this process were killed.
 */
const LINGER_MS = 5

/** Successes that come close together share a statement and its commit. */
export function createRecordFirstSuccess(
  dataSource: DataSource,
  { followAfterMs }: { followAfterMs: FollowAfter },
): RecordFirstSuccess {
  return createBatchedStatement({
    runAll: (records) => recordFirstSuccesses(dataSource, records, followAfterMs),
    maxConcurrent: MAX_CONCURRENT_BATCHES,
    maxBatchSize: MAX_BATCH_SIZE,
    lingerMs: LINGER_MS,
  })
}

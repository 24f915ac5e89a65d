import { setTimeout as delay } from 'node:timers/promises'
import type { DataSource } from 'typeorm'
import {
  isTimeout,
  type AttemptOutcome,
  type AttemptRequest,
  type RowOutcome,
} from '../../domain/attempt-outcome.ts'
import { waitAfterAttempt } from '../../domain/retry-schedule.ts'
import { signalIncident } from '../../incidents/evaluate-notifications.ts'
import { StoppingError } from '../../shutdown.ts'
import { settlesWithin, type Pace } from '../../timers.ts'
import { claimLeaseMs, releaseRuns, type Claim } from '../protocol/claim.ts'
import { claimAttempt, isFresh } from './claim-attempt.ts'
import type { Slot } from './endpoint.ts'
import type { Deferral, Endpoints } from './endpoint-concurrency.ts'
import { createLeaseRenewal, type RenewLease } from './unrecorded-outcomes.ts'
import { recordOutcome, type RecordFirstSuccess } from './record-outcome.ts'
import { deliveryHeaders, lostWorker, post, type Sent } from './send-signed.ts'
import { waitUntilDue, type DatabaseClock } from '../../db/connection/database-clock.ts'
import type { Logger } from '../../observability/logger.ts'
import type { Metrics } from '../../observability/metrics.ts'
import type { HttpClient } from '../../outbound/http-client.ts'
import type { SecretBox } from '../../secret-box.ts'
import type { WebhookLocks } from '../../webhooks/webhook-locks.ts'
import type { IncidentWorkflows } from '../../temporal/workflows.ts'
import type { RecordUnderLock } from './record-under-lock.ts'

/** The dependencies of an attempt. `attemptTimeoutMs` is the deadline of one whole POST. */
export type AttemptDependencies = {
  dataSource: DataSource
  locks: WebhookLocks
  httpClient: HttpClient
  secretBox: SecretBox
  logger: Logger
  metrics: Metrics
  attemptTimeoutMs: number
  endpoints: Endpoints
  incidentWorkflows: IncidentWorkflows
  recordFirstSuccess: RecordFirstSuccess
  recordUnderLock: RecordUnderLock
  /** Paces the reports of time-outs to Temporal: endpoints that hang together time out together. */
  timeoutPace: Pace
  clock: DatabaseClock
}

/** What an attempt reports when it has begun, and when a slot is free. `isInline`: it is made without a workflow. */
export type AttemptEvent = { isInline: boolean; webhookId: string; deliveryId: string }
export type OnAttempt = (event: AttemptEvent) => void

/**
 * `cancelled`: the attempt is not to be made any more, unless its POST has begun. `shutDown`: the process ends, and cuts
 * the POST off.
 */
export type AttemptSignals = { cancelled: AbortSignal; shutDown: AbortSignal }

/** An attempt that is made without a workflow, in `slot`, and has its row already. */
type InlineAttempt = { claim: Claim; slot: Slot }

/** Makes one attempt. `inline` is null for the attempts of workflows. */
export type MakeAttempt = (
  request: AttemptRequest,
  signals: AttemptSignals,
  inline?: InlineAttempt | null,
) => Promise<AttemptOutcome>

/** An outcome that is not recorded by then is recorded without the slot of its attempt. */
const RECORD_WAIT_MS = 5_000

/** Pause after a claim that took too long, and the interval at which such claims are logged. */
const EXPIRED_CLAIM_DELAY_MS = 500
const EXPIRED_CLAIM_LOG_INTERVAL_MS = 60_000

/** What is kept of a payload. */
const NO_BYTES = Buffer.alloc(0)

/** After more lost workers the attempt is recorded as failed, and not made again. */
const MAX_LOST_WORKERS = 5

/**
 * Builds the function that makes every attempt: wait until due → acquire a slot → claim → send → record → report.
 * `onAttempt` is called when an attempt has begun or is deferred, and whenever its slot may be free.
 * Failures of the receiver are returned as data. While the database is unavailable it waits before the POST. After the
 * POST it waits a few seconds until the outcome is recorded; then the attempt ends as `deferred`, and this process keeps
 * the outcome and its lease until the database accepts it: nothing is posted again meanwhile. Throws only for faults of
 * ours before the POST, and when a signal aborts.
 */
export function createAttempt(
  dependencies: AttemptDependencies,
  onAttempt: OnAttempt = () => undefined,
): MakeAttempt {
  const { dataSource, endpoints, metrics, clock, logger } = dependencies
  const renewLease = createLeaseRenewal({ dataSource, leaseMs: claimLeaseMs(dependencies.attemptTimeoutMs) })
  let loggedAtMs = -Infinity
  const logExpired = ({ organisationId, webhookId, deliveryId, number: attempt }: AttemptRequest): void => {
    if (performance.now() - loggedAtMs < EXPIRED_CLAIM_LOG_INTERVAL_MS) return
    loggedAtMs = performance.now()
    logger.warn({ event: 'attempt.claim_expired', organisationId, webhookId, deliveryId, attempt })
  }
  const tools = { ...dependencies, renewLease, logExpired }
  return async function makeAttempt(request, signals, inline = null): Promise<AttemptOutcome> {
    const { webhookId, deliveryId, dueAtMs, maxWaitMs } = request
    if (dueAtMs !== null) await waitUntilDue(clock, { dueAtMs, maxWaitMs }, signals.cancelled)
    const slot = inline?.slot ?? (await slotFor(endpoints, request))
    const report = (): void => onAttempt({ isInline: inline !== null, webhookId, deliveryId })
    if ('retryAfterMs' in slot) {
      metrics.attemptDeferred()
      report()
      return { state: 'deferred', delayMs: Math.ceil(slot.retryAfterMs) }
    }
    metrics.attemptBegun()
    report()
    try {
      return await claimSendRecord(tools, request, signals, inline, {
        begin: () => slot.begin(),
        release(outcome) {
          slot.release(outcome)
          report()
        },
        recorded: report,
      })
    } finally {
      slot.release(null)
      report()
      metrics.attemptEnded()
    }
  }
}

/** Defers an attempt of another queue at a slow endpoint: the workflow then requests one on the queue `slow`. */
function slotFor(
  endpoints: Endpoints,
  { queue, webhookId, deliveryId }: AttemptRequest,
): Slot | Deferral | Promise<Slot | Deferral> {
  const isOnWrongQueue = queue !== 'slow' && endpoints.health(webhookId) === 'slow'
  return isOnWrongQueue ? { retryAfterMs: 0 } : endpoints.acquireSoon(webhookId, deliveryId)
}

async function claimSendRecord(
  dependencies: AttemptDependencies & {
    renewLease: RenewLease
    logExpired: (request: AttemptRequest) => void
  },
  request: AttemptRequest,
  signals: AttemptSignals,
  inline: InlineAttempt | null,
  slot: Slot & { recorded: () => void },
): Promise<AttemptOutcome> {
  const { clock, endpoints, renewLease } = dependencies
  const { webhookId, deliveryId } = request
  const lease = { leaseMs: claimLeaseMs(dependencies.attemptTimeoutMs), isWorkflow: inline === null }
  let given = inline?.claim ?? null
  // Repeats an attempt that has no outcome, or whose failure does not count since another run took the row. Each time it
  // is a run of its own, and counted.
  for (;;) {
    const claim = given ?? (await claimAttempt(dependencies, request, lease, signals.cancelled))
    const isGiven = given !== null
    given = null
    if (!('owner' in claim)) return claim
    if (!isFresh(claim)) {
      await release(dependencies, deliveryId, claim, false)
      if (!isGiven) {
        dependencies.logExpired(request)
        await delay(EXPIRED_CLAIM_DELAY_MS, undefined, { signal: signals.cancelled })
      }
      continue
    }
    const isLost = claim.runs > MAX_LOST_WORKERS
    const sent = isLost
      ? lostWorker(MAX_LOST_WORKERS, new Date(clock.nowMs()))
      : await send(dependencies, request, claim, { slot, shutDown: signals.shutDown })
    if (sent.result.isInconclusive) {
      logRepeated(dependencies, request, claim)
      await release(dependencies, deliveryId, claim, true)
      continue
    }
    const { succeeded, failureCode } = sent.result
    const timedOut = isTimeout(failureCode)
    const waitMs = waitAfterAttempt(request.number)
    const retry = waitMs === null ? null : { deliveryId, inMs: waitMs }
    slot.release(isLost ? null : { succeeded, isTimeout: timedOut, retry })
    const stopRenewal = renewLease({ deliveryId, owner: claim.owner })
    const recording = recordOutcome(dependencies, request, claim, sent).finally(stopRenewal)
    if (!(await settlesWithin(recording, RECORD_WAIT_MS))) {
      claim.body = NO_BYTES
      const delayMs = endpoints.keepUnrecorded(webhookId, deliveryId, recording)
      // What waits for the endpoint may go on. The sweeper signals the incident.
      void recording.then(slot.recorded, slot.recorded)
      // An inline attempt has freed its slot by then, and the lease of its row is the only claim.
      if (delayMs !== null && inline === null) return { state: 'deferred', delayMs }
    }
    const recorded = await recording
    if (recorded !== null) {
      // Time-outs come together: they are reported to Temporal at a pace, and the sweeper signals their incidents.
      if (!timedOut) await signalIncident(dependencies, recorded.toSignal)
      else if (inline === null) {
        const endedAtMs = performance.now()
        await dependencies.timeoutPace.next(signals.cancelled)
        return dueSooner(recorded.outcome, performance.now() - endedAtMs)
      }
      return recorded.outcome
    }
  }
}

/** Returns the outcome as it is `ms` after the database answered. */
function dueSooner(outcome: RowOutcome, ms: number): RowOutcome {
  return outcome.state === 'waiting' ? { ...outcome, dueInMs: outcome.dueInMs - Math.round(ms) } : outcome
}

/** Logs that the attempt is repeated: this process was paused in mid-POST, and the endpoint did not cause the failure. */
function logRepeated(
  { metrics, logger }: AttemptDependencies,
  request: AttemptRequest,
  { traceId }: Claim,
): void {
  const { organisationId, webhookId, deliveryId, number: attempt } = request
  metrics.attemptRepeated()
  logger.warn({ event: 'attempt.repeated', organisationId, webhookId, deliveryId, traceId, attempt })
}

/**
 * Signs and posts. An error without an outcome releases the row at once: a fault of ours before the POST (a key missing
 * from the ring) and a stopping process cost no attempt; a POST that is cut off counts as a lost worker.
 */
async function send(
  dependencies: AttemptDependencies,
  request: AttemptRequest,
  claim: Claim,
  { slot, shutDown }: { slot: Slot; shutDown: AbortSignal },
): Promise<Sent> {
  const { secretBox, httpClient } = dependencies
  let isPosting = false
  try {
    const headers = deliveryHeaders(secretBox, request.deliveryId, claim)
    isPosting = true
    slot.begin()
    return await post(httpClient, request, claim, headers, shutDown)
  } catch (error) {
    await release(dependencies, request.deliveryId, claim, isPosting && !(error instanceof StoppingError))
    throw error
  }
}

/** Returns the row. Where that fails, its lease ends by itself. */
async function release(
  { dataSource, logger }: AttemptDependencies,
  deliveryId: string,
  { owner }: Claim,
  hasPosted: boolean,
): Promise<void> {
  await releaseRuns(dataSource, [{ deliveryId, owner, hasPosted }]).catch((failure: unknown) => {
    logger.warn({ event: 'attempt.release_failed', deliveryId, err: failure })
  })
}

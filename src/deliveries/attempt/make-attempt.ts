import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import {
  claimAttempt,
  findStanding,
  releaseClaim,
  type Claim,
  type Standing,
} from '../../db/queries/claims.ts'
import { isTimeout, type AttemptOutcome } from '../../domain/attempt-outcome.ts'
import type {
  AttemptDependencies,
  AttemptEvent,
  AttemptRequest,
  AttemptSignals,
  InlineAttempt,
  MakeAttempt,
} from './attempt-request.ts'
import { isSlowOrHanging } from './endpoint.ts'
import type { Deferral, Endpoints, Slot } from './endpoint-registry.ts'
import { waitUntilDue } from './wait-until-due.ts'
import { retryWhileUnavailable } from '../../db/retry-while-unavailable.ts'
import { waitAfterAttempt } from '../../domain/retry-schedule.ts'
import { signalIncident } from '../../incidents/signal-incident.ts'
import { StoppingError } from '../../shutdown.ts'
import { createClaimRenewal, type RenewClaim } from './claim-renewal.ts'
import { recordOutcome } from './record-outcome.ts'
import { deliveryHeaders, lostWorker, post, type Sent } from './send-signed.ts'
import { outcomeOfRow } from './outcome-of-row.ts'
import { CLAIM_MARGIN_MS, claimLeaseMs, SWEEP_DELAY_MS } from '../lease-times.ts'

/** Interval at which a run tries to claim a row that another run leases: most are released before the lease ends. */
const CLAIM_INTERVAL_MS = 250

/** An outcome that is not recorded by then is recorded without the slot of its attempt. */
const RECORD_WAIT_MS = 5_000

/** What is kept of a payload. */
const NO_BYTES = Buffer.alloc(0)

/** After more lost workers the attempt is recorded as failed, and not made again. */
const MAX_LOST_WORKERS = 5

/**
 * Builds the function that makes every attempt: wait until due → acquire a slot → claim → send → record → report.
 * Failures of the receiver are returned as data. While the database is unavailable it waits before the POST. After the
 * POST it waits a few seconds until the outcome is recorded; then the attempt ends as `deferred`, and this process keeps
 * the outcome and its claim until the database accepts it: nothing is posted again meanwhile. Throws only for faults of
 * ours before the POST, and when a signal aborts.
 */
export function createAttempt(dependencies: AttemptDependencies): MakeAttempt {
  const { dataSource, endpoints, onAttempt, metrics, clock } = dependencies
  const renewClaim = createClaimRenewal({ dataSource, leaseMs: claimLeaseMs(dependencies.attemptTimeoutMs) })
  const tools = { ...dependencies, renewClaim }
  return async function makeAttempt(request, signals, inline = null): Promise<AttemptOutcome> {
    if (request.waitUntil !== null) await waitUntilDue(clock, request.waitUntil, signals.cancelled)
    const { webhookId, deliveryId } = request
    const slot = inline?.slot ?? (await slotFor(endpoints, request))
    if ('retryAfterMs' in slot) {
      metrics.attemptDeferred()
      return { state: 'deferred', delayMs: Math.ceil(slot.retryAfterMs) }
    }
    const report = (type: AttemptEvent['type']): void =>
      onAttempt({ type, isInline: inline !== null, webhookId, deliveryId })
    metrics.attemptBegun()
    report('begun')
    try {
      return await claimSendRecord(tools, request, signals, inline, {
        begin: () => slot.begin(),
        release(outcome) {
          slot.release(outcome)
          report('slot_freed')
        },
        recorded: () => report('slot_freed'),
      })
    } finally {
      slot.release(null)
      report('ended')
      metrics.attemptEnded()
    }
  }
}

/** Defers an attempt of another kind at a slow endpoint: the workflow then requests a `slow` one. */
function slotFor(
  endpoints: Endpoints,
  { kind, webhookId, deliveryId }: AttemptRequest,
): Slot | Deferral | Promise<Slot | Deferral> {
  const isOnWrongQueue = kind !== 'slow' && isSlowOrHanging(endpoints.health(webhookId))
  return isOnWrongQueue ? { retryAfterMs: 0 } : endpoints.acquireSoon(webhookId, deliveryId)
}

async function claimSendRecord(
  dependencies: AttemptDependencies & { renewClaim: RenewClaim },
  request: AttemptRequest,
  signals: AttemptSignals,
  inline: InlineAttempt | null,
  slot: Slot & { recorded: () => void },
): Promise<AttemptOutcome> {
  const { metrics, clock, endpoints, renewClaim } = dependencies
  const { webhookId, deliveryId } = request
  const owner = inline?.owner ?? randomUUID()
  const isInline = inline !== null
  const leaseMs = claimLeaseMs(dependencies.attemptTimeoutMs)
  // Temporal replaces a lost worker of a workflow; without a workflow the sweeper does, as soon as the lease ends.
  const run: Run = { owner, isInline, leaseMs, sweepAfterMs: isInline ? leaseMs : leaseMs + SWEEP_DELAY_MS }
  let leased = inline?.claim ?? null
  // Repeats an attempt that has no outcome, or whose failure does not count since another run took the row.
  for (;;) {
    const claim = leased ?? (await claimRow(dependencies, request, run, signals.cancelled))
    leased = null
    if (!('body' in claim)) return claim
    if (claim.state === 'stopped') {
      metrics.deliveriesStopped(1)
      return { state: 'stopped', attempts: request.number - 1, failureCode: null, statusCode: null }
    }
    const sent =
      claim.claims > MAX_LOST_WORKERS
        ? lostWorker(MAX_LOST_WORKERS, new Date(clock.nowMs()))
        : await send(dependencies, request, claim, owner, { slot, shutDown: signals.shutDown })
    if (sent.result.isInconclusive) logRepeated(dependencies, request, claim)
    else {
      const { succeeded, durationMs, failureCode } = sent.result
      const timedOut = isTimeout(failureCode)
      const waitMs = waitAfterAttempt(request.number)
      const retry = waitMs === null ? null : { deliveryId, inMs: waitMs }
      slot.release({ succeeded, durationMs, isTimeout: timedOut, retry })
      const stopRenewal = renewClaim({ deliveryId, owner, sweepAfterMs: run.sweepAfterMs })
      const recording = recordOutcome(dependencies, request, claim, run, sent).finally(stopRenewal)
      if (!(await endsWithin(recording, RECORD_WAIT_MS))) {
        claim.body = NO_BYTES
        const delayMs = endpoints.keepUnrecorded(webhookId, deliveryId, recording)
        // What waits for the endpoint may go on. The sweeper signals the incident.
        void recording.then(slot.recorded, slot.recorded)
        // An inline attempt has freed its slot by then, and the lease of its row is the only claim.
        if (delayMs !== null && !isInline) return { state: 'deferred', delayMs }
      }
      const recorded = await recording
      if (recorded !== null) {
        // Time-outs come together: they are reported to Temporal at a pace, and the sweeper signals their incidents.
        if (!timedOut) await signalIncident(dependencies, recorded.toSignal)
        else if (!isInline) await dependencies.timeoutPace.next(signals.cancelled)
        return recorded.outcome
      }
    }
  }
}

/** Returns whether `work` ends within so many ms. */
function endsWithin(work: Promise<unknown>, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), ms)
    const end = (): void => {
      clearTimeout(timer)
      resolve(true)
    }
    work.then(end, end)
  })
}

/** Logs that the attempt is repeated: this process was paused in mid-POST, and the endpoint did not cause the failure. */
function logRepeated(
  { metrics, logger }: AttemptDependencies,
  request: AttemptRequest,
  { traceId }: Claim,
): void {
  const { organisationId, webhookId, deliveryId, number: attempt } = request
  metrics.attemptRepeated()
  const fields = { event: 'attempt.repeated', organisationId, webhookId, deliveryId, traceId, attempt }
  logger.warn(fields, fields.event)
}

/**
 * Signs and posts. An error without an outcome releases the row at once: a fault of ours before the POST (a key missing
 * from the ring) and a stopping process cost no attempt; a POST that is cut off counts as a lost worker.
 */
async function send(
  { dataSource, secretBox, httpClient, logger }: AttemptDependencies,
  request: AttemptRequest,
  claim: Claim,
  owner: string,
  { slot, shutDown }: { slot: Slot; shutDown: AbortSignal },
): Promise<Sent> {
  let isPosting = false
  try {
    const headers = deliveryHeaders(secretBox, request.deliveryId, claim)
    isPosting = true
    slot.begin()
    return await post(httpClient, claim, headers, shutDown)
  } catch (error) {
    const counts = isPosting && !(error instanceof StoppingError)
    await releaseClaim(dataSource, request, { owner, counts }).catch((failure: unknown) => {
      const fields = { event: 'attempt.release_failed', deliveryId: request.deliveryId, err: failure }
      logger.warn(fields, 'attempt.release_failed')
    })
    throw error
  }
}

/** One run of an attempt. `isInline`: it has no workflow, and `owner` is the process that leases the delivery. */
type Run = { owner: string; isInline: boolean; leaseMs: number; sweepAfterMs: number }

/**
 * Claims the row for this attempt, after the lease of another run has ended and the row is due by the database's clock;
 * or returns the outcome that is recorded already, or `deferred` while another run renews its lease.
 */
async function claimRow(
  { dataSource }: AttemptDependencies,
  request: AttemptRequest,
  { owner, isInline: inline, leaseMs, sweepAfterMs }: Run,
  signal: AbortSignal,
): Promise<Claim | AttemptOutcome> {
  const onlyIfDue = request.onlyIfDue || request.waitUntil !== null
  const lease = { owner, leaseMs, sweepAfterMs, onlyIfDue, inline }
  const waitUntilMs = performance.now() + leaseMs
  for (;;) {
    signal.throwIfAborted()
    const startedAtMs = performance.now()
    const claim = await retryWhileUnavailable(() => claimAttempt(dataSource, request, lease), signal)
    // The lease of a slow claim could end in mid-POST: the same owner claims again.
    if (claim !== null && performance.now() - startedAtMs > CLAIM_MARGIN_MS / 2) continue
    if (claim !== null) return claim
    const standing = await retryWhileUnavailable(() => findStanding(dataSource, request), signal)
    const waitMs = standing === null ? null : waitForRow(standing, request)
    if (waitMs === null) return outcomeOfRow(standing, request.number)
    // The run that leases the row has ended its POST, and renews its lease until the outcome is recorded.
    if (standing?.state === 'in_progress' && performance.now() > waitUntilMs)
      return { state: 'deferred', delayMs: leaseMs }
    await delay(waitMs, undefined, { signal })
  }
}

/** Returns after how many ms to claim the row again; null when this run is not to wait for it. */
function waitForRow(standing: Standing, { number, waitUntil, onlyIfDue }: AttemptRequest): number | null {
  const isFinal = !['pending', 'waiting', 'in_progress'].includes(standing.state)
  if (isFinal || standing.attempts !== number - 1) return null
  if (standing.state !== 'waiting') return Math.min(standing.leasedForMs + 1, CLAIM_INTERVAL_MS)
  if (standing.dueInMs <= 0) return 1
  // The clocks of Temporal and the database differ by so much that the workflow has to wait again.
  if (onlyIfDue || waitUntil === null || standing.dueInMs > waitUntil.maxWaitMs) return null
  return Math.ceil(standing.dueInMs)
}

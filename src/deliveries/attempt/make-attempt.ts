import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import {
  claimAttempt,
  findStanding,
  releaseClaim,
  type Claim,
  type Standing,
} from '../../db/queries/attempts.ts'
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
import type { Deferral, Endpoints, Slot } from './endpoints.ts'
import { waitUntilDue } from './wait-until-due.ts'
import { untilDatabaseAnswers } from '../../db/patience.ts'
import { waitAfterAttempt } from '../../domain/retry-schedule.ts'
import { tellOfIncident } from '../../incidents/tell.ts'
import { StoppingError } from '../../shutdown.ts'
import { createClaimRenewal, type ClaimRenewal } from './claim-renewal.ts'
import { recordOutcome, type HeldClaim } from './record-outcome.ts'
import { deliveryHeaders, lostWorker, post, type Sent } from './send-signed.ts'
import { isNext, recordedOutcome } from './recorded-outcome.ts'
import { CLAIM_MARGIN_MS, claimLeaseMs, SWEEP_AFTER_MS } from '../lease-times.ts'

/** Interval at which a run asks again for a row that another run holds; most are released long before their lease ends. */
const ASK_AGAIN_MS = 250

/** After losing this many workers at one attempt, it is recorded as failed instead of being made again. */
const MAX_LOST_WORKERS = 5

/**
 * The one way in which an attempt is made: wait until due → acquire a slot → claim → send → record → report.
 * Whatever the receiver does is returned as data. While the database is away it waits before the POST, and once that is
 * over until its outcome is recorded. Throws only for faults of ours before the POST, and when a signal asks it to give
 * up.
 */
export function createAttempt(dependencies: AttemptDependencies): MakeAttempt {
  const { dataSource, endpoints, onAttempt, metrics, clock } = dependencies
  const renewal = createClaimRenewal({ dataSource, leaseMs: claimLeaseMs(dependencies.attemptTimeoutMs) })
  return async function makeAttempt(request, signals, inline = null): Promise<AttemptOutcome> {
    if (request.hold !== null) await waitUntilDue(clock, request.hold, signals.cancelled)
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
      return await claimSendRecord({ ...dependencies, renewal }, request, signals, inline, {
        begin: () => slot.begin(),
        release(outcome) {
          slot.release(outcome)
          report('slot_freed')
        },
      })
    } finally {
      slot.release(null)
      report('ended')
      metrics.attemptEnded()
    }
  }
}

/** An attempt of another kind is not made at an endpoint that is slow: it comes back as a `slow` one. */
function slotFor(
  endpoints: Endpoints,
  { kind, webhookId, deliveryId }: AttemptRequest,
): Slot | Deferral | Promise<Slot | Deferral> {
  const isMisplaced = kind !== 'slow' && isSlowOrHanging(endpoints.health(webhookId, -Infinity))
  return isMisplaced ? { retryAfterMs: 0 } : endpoints.acquireSoon(webhookId, deliveryId)
}

async function claimSendRecord(
  dependencies: AttemptDependencies & { renewal: ClaimRenewal },
  request: AttemptRequest,
  signals: AttemptSignals,
  inline: InlineAttempt | null,
  slot: Slot,
): Promise<AttemptOutcome> {
  const { metrics, clock, renewal } = dependencies
  const { deliveryId } = request
  const run: Run = { owner: inline?.owner ?? randomUUID(), isInline: inline !== null }
  let held = inline?.claim ?? null
  // Made again where it has no outcome, or its failure does not count since the row was lost to another run.
  for (;;) {
    const claim = held ?? (await takeRow(dependencies, request, run, signals.cancelled))
    held = null
    if (!('body' in claim)) return claim
    if (claim.state === 'stopped') {
      metrics.deliveriesStopped(1)
      return { state: 'stopped', attempts: request.number - 1, failureCode: null, statusCode: null }
    }
    const sent =
      claim.claims > MAX_LOST_WORKERS
        ? lostWorker(MAX_LOST_WORKERS, new Date(clock.nowMs()))
        : await send(dependencies, request, claim, run.owner, { slot, shutDown: signals.shutDown })
    if (sent.result.isInconclusive) sayRepeated(dependencies, request)
    else {
      const { succeeded, durationMs, failureCode } = sent.result
      const timedOut = isTimeout(failureCode)
      const waitMs = waitAfterAttempt(request.number)
      const retry = waitMs === null ? null : { deliveryId, inMs: waitMs }
      slot.release({ succeeded, durationMs, isTimeout: timedOut, retry })
      const release = renewal.hold({
        deliveryId,
        owner: run.owner,
        sweepAfterMs: sweepAfterMs(dependencies, run),
      })
      const made: HeldClaim = { claim, owner: run.owner, underLease: run.isInline }
      const recorded = await recordOutcome(dependencies, request, made, sent).finally(release)
      if (recorded !== null) {
        // Endpoints that hang together time out together: Temporal hears of that little by little, of incidents by the sweeper.
        if (!timedOut) await tellOfIncident(dependencies, recorded.tell)
        else if (inline === null) await dependencies.timeoutPace.next(signals.cancelled)
        return recorded.outcome
      }
    }
  }
}

/** This process was paused in mid-POST: what it met then is nothing that the endpoint did. */
function sayRepeated({ metrics, logger }: AttemptDependencies, request: AttemptRequest): void {
  const { organisationId, webhookId, deliveryId, number: attempt } = request
  metrics.attemptRepeated()
  logger.warn(
    { event: 'attempt.repeated', organisationId, webhookId, deliveryId, attempt },
    'attempt.repeated',
  )
}

/**
 * Signs and posts. Where that ends without an outcome the row is released at once: by a fault of ours before the POST
 * (a key missing from the ring) or because this process is stopping, which costs the customer no attempt; or because it
 * has to end in mid-POST, which counts as a lost worker.
 */
async function send(
  { dataSource, secretBox, httpClient, logger }: AttemptDependencies,
  request: AttemptRequest,
  held: Claim,
  owner: string,
  { slot, shutDown }: { slot: Slot; shutDown: AbortSignal },
): Promise<Sent> {
  let begun = false
  try {
    const headers = deliveryHeaders(secretBox, request.deliveryId, held)
    begun = true
    slot.begin()
    return await post(httpClient, held, headers, shutDown)
  } catch (error) {
    await releaseClaim(dataSource, request, {
      owner,
      counts: begun && !(error instanceof StoppingError),
    }).catch((failure: unknown) =>
      logger.warn(
        { event: 'attempt.not_released', deliveryId: request.deliveryId, err: failure },
        'attempt.not_released',
      ),
    )
    throw error
  }
}

/** One run of an attempt. `isInline`: for a delivery without a workflow, by the process that has its lease. */
type Run = { owner: string; isInline: boolean }

/** A workflow makes up for a lost worker by itself; where there is none yet, the sweep does. */
function sweepAfterMs({ attemptTimeoutMs }: AttemptDependencies, { isInline }: Run): number {
  const leaseMs = claimLeaseMs(attemptTimeoutMs)
  return isInline ? leaseMs : leaseMs + SWEEP_AFTER_MS
}

/**
 * Takes the row for this attempt, waiting for another attempt's hold on it to end, and for what is left until its time by
 * the database's clock; or returns what was recorded already.
 */
async function takeRow(
  dependencies: AttemptDependencies,
  request: AttemptRequest,
  run: Run,
  signal: AbortSignal,
): Promise<Claim | AttemptOutcome> {
  const { dataSource, attemptTimeoutMs } = dependencies
  const hold = {
    owner: run.owner,
    leaseMs: claimLeaseMs(attemptTimeoutMs),
    sweepAfterMs: sweepAfterMs(dependencies, run),
    onlyIfDue: request.onlyIfDue || request.hold !== null,
    inline: run.isInline,
  }
  for (;;) {
    signal.throwIfAborted()
    const askedAt = performance.now()
    const taken = await untilDatabaseAnswers(() => claimAttempt(dataSource, request, hold), signal)
    // A claim that came back too late could run out in mid-POST: it is renewed, as its owner may.
    if (taken !== null && performance.now() - askedAt > CLAIM_MARGIN_MS / 2) continue
    if (taken !== null) return taken
    const standing = await untilDatabaseAnswers(() => findStanding(dataSource, request), signal)
    const waitMs = standing === null ? null : waitForRow(standing, request)
    if (waitMs === null) return recordedOutcome(standing, request.number)
    await delay(waitMs, undefined, { signal })
  }
}

/** After how long the row is to be asked for again; null when that is not for this run to wait for. */
function waitForRow(standing: Standing, { number, hold, onlyIfDue }: AttemptRequest): number | null {
  if (!isNext(standing, number)) return null
  if (standing.state !== 'waiting') return Math.min(standing.heldForMs + 1, ASK_AGAIN_MS)
  if (standing.dueInMs <= 0) return 1
  // The clocks of Temporal and the database disagree by so much that the workflow is to wait once more.
  if (onlyIfDue || hold === null || standing.dueInMs > hold.atMostMs) return null
  return Math.ceil(standing.dueInMs)
}

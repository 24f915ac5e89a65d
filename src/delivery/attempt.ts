import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { claimAttempt, findStanding, releaseClaim, type Claim } from '../db/queries/attempts.ts'
import type { AttemptOutcome } from '../domain/attempt-outcome.ts'
import type {
  AttemptDependencies,
  AttemptRequest,
  AttemptSignals,
  Beside,
  MakeAttempt,
} from './attempt-request.ts'
import { holdUntil } from './hold.ts'
import { untilDatabaseAnswers } from '../db/patience.ts'
import { StoppingError } from '../shutdown.ts'
import { recordOutcome } from './record-outcome.ts'
import { deliveryHeaders, lostWorker, post, type Sent } from './send-signed.ts'
import { isItsTurn, standingOutcome } from './standing-outcome.ts'
import { CLAIM_MARGIN_MS, claimLeaseMs, SWEEP_AFTER_MS } from './timing.ts'

/** How often a run looks whether the one that holds the row is through; most are, long before their lease ends. */
const LOOK_AGAIN_MS = 250

/** After losing this many workers at one attempt, it is recorded as failed instead of being made again. */
const MAX_LOST_WORKERS = 5

/**
 * The one way in which an attempt is made: hold → gate → claim → send → record.
 * Whatever the receiver does is returned as data. While the database is away it waits, before the POST and while
 * recording. Throws only for faults of ours, and when a signal asks it to give up.
 */
export function createAttempt(dependencies: AttemptDependencies): MakeAttempt {
  const { gate, handedOver, metrics } = dependencies
  return async function makeAttempt(request, signals, beside = null): Promise<AttemptOutcome> {
    if (request.hold !== null) await holdUntil(request.hold, signals.cancelled)
    const pass = gate.enter(request.webhookId, request.deliveryId)
    if ('comeBackAfterMs' in pass) {
      metrics.attemptDeferred()
      return { state: 'deferred', delayMs: Math.ceil(pass.comeBackAfterMs) }
    }
    metrics.attemptBegun()
    handedOver.begun(request.deliveryId)
    try {
      const posted = (): void => {
        pass.leave()
        beside?.posted()
      }
      return await claimSendRecord(dependencies, request, signals, beside, posted)
    } finally {
      pass.leave()
      handedOver.ended(request.deliveryId)
      metrics.attemptEnded()
    }
  }
}

async function claimSendRecord(
  dependencies: AttemptDependencies,
  request: AttemptRequest,
  signals: AttemptSignals,
  beside: Beside | null,
  posted: () => void,
): Promise<AttemptOutcome> {
  const claimed = await claim(dependencies, request, beside, signals.cancelled)
  if (claimed.kind === 'elsewhere') return claimed.outcome
  const { claim: held, owner, underLease } = claimed
  if (held.state === 'stopped') {
    dependencies.metrics.deliveriesStopped(1)
    return { state: 'stopped', attempts: request.number - 1, failureCode: null, statusCode: null }
  }
  const sent =
    held.claims > MAX_LOST_WORKERS
      ? lostWorker(MAX_LOST_WORKERS)
      : await send(dependencies, request, held, owner, signals.shutDown)
  posted()
  return recordOutcome(dependencies, request, held, sent, underLease)
}

/**
 * Signs and posts. Where that ends without an outcome the row is let go at once: by a fault of ours before the POST
 * (a key missing from the ring) or because this process is stopping, which costs the customer no attempt; or because it
 * has to end in mid-POST, which counts as a lost worker.
 */
async function send(
  { dataSource, secretBox, httpClient, watch, logger }: AttemptDependencies,
  request: AttemptRequest,
  held: Claim,
  owner: string,
  shutDown: AbortSignal,
): Promise<Sent> {
  let begun = false
  const note = watch.begin(request.webhookId)
  try {
    const headers = deliveryHeaders(secretBox, request.deliveryId, held)
    begun = true
    const sent = await post(httpClient, held, headers, shutDown)
    note(sent.result)
    return sent
  } catch (error) {
    note(null)
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

/** `owner` holds the row; `underLease` since the commit of its delivery, without a claim. */
type Claimed =
  | { kind: 'held'; claim: Claim; owner: string; underLease: boolean }
  | { kind: 'elsewhere'; outcome: AttemptOutcome }

/**
 * Takes the row for this attempt, waiting for another attempt's hold on it to end; or tells what was recorded already.
 */
async function claim(
  dependencies: AttemptDependencies,
  request: AttemptRequest,
  beside: Beside | null,
  signal: AbortSignal,
): Promise<Claimed> {
  if (beside?.held) return { kind: 'held', claim: beside.held, owner: beside.owner, underLease: true }
  const { dataSource, attemptTimeoutMs } = dependencies
  const owner = randomUUID()
  const leaseMs = claimLeaseMs(attemptTimeoutMs)
  const { onlyIfDue } = request
  // A workflow makes up for a lost worker by itself; where there is none yet, the sweep does.
  const sweepAfterMs = beside === null ? leaseMs + SWEEP_AFTER_MS : leaseMs
  const hold = { owner, leaseMs, sweepAfterMs, onlyIfDue, beside: beside !== null }
  for (;;) {
    signal.throwIfAborted()
    const askedAt = performance.now()
    const taken = await untilDatabaseAnswers(() => claimAttempt(dataSource, request, hold), signal)
    // A claim that came back too late could run out in mid-POST: it is renewed, as its owner may.
    if (taken !== null && performance.now() - askedAt > CLAIM_MARGIN_MS / 2) continue
    if (taken !== null) return { kind: 'held', claim: taken, owner, underLease: false }
    const standing = await untilDatabaseAnswers(() => findStanding(dataSource, request), signal)
    if (standing === null || !isItsTurn(standing, request)) {
      return { kind: 'elsewhere', outcome: standingOutcome(standing, request.number) }
    }
    await delay(Math.min(standing.heldForMs + 1, LOOK_AGAIN_MS), undefined, { signal })
  }
}

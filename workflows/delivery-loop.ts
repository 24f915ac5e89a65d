import {
  describeOutcome,
  isTimeout,
  type AttemptOutcome,
  type RowOutcome,
} from '../src/domain/attempt-outcome.ts'
import { dueOf, queueOfKind } from '../src/domain/old-attempts.ts'
import type {
  DeliverEventInput,
  DeliverEventResult,
  DeliverySnapshot,
  PlannedAttempt,
} from '../src/domain/workflow-inputs.ts'
import type { AttemptRequest, AttemptQueue } from '../src/domain/attempt-outcome.ts'
import type { DeliveryState } from '../src/domain/delivery-state.ts'
import { attemptName } from '../src/domain/retry-schedule.ts'

/** What a run of `deliverEvent` gets from Temporal. */
export type DeliveryRuntime = {
  /** Temporal's clock. */
  nowMs: () => number
  /**
   * Signals that are not acted on yet. `retryRequested`: a retry that is to be recorded on the row first. `rowChanged`:
   * the row is to be read.
   */
  wakeUps: { retryRequested: boolean; rowChanged: boolean }
  isCancelRequested: () => boolean
  /** True when Temporal suggests to continue as new. */
  isHistoryLong: () => boolean
  /** Waits until `isOver`, for `ms` at most. */
  wait: (ms: number, summary: string, isOver: () => boolean) => Promise<void>
  makeAttempt: (request: Pick<AttemptRequest, 'number' | 'dueAtMs' | 'queue'>) => Promise<AttemptOutcome>
  /** Records on the row that a retry is requested. */
  requestRetry: () => Promise<void>
  show: (snapshot: DeliverySnapshot) => void
  /** Sets the search attribute `DeliveryState`. */
  indexState: (state: DeliveryState) => void
  isIndexedAsWaiting: () => boolean
  continueAsNew: (input: DeliverEventInput) => Promise<never>
}

type Next = PlannedAttempt & { queue: AttemptQueue }

/**
 * Runs one delivery from its next attempt to its end: wait → request the attempt → outcome → wait … The row in PostgreSQL
 * refuses a claim before its time, so whatever wakes the run, it requests the attempt at once, and learns from a refusal
 * how long is left. Ends when the row is final and no signal came meanwhile.
 */
export async function runDelivery(
  input: DeliverEventInput,
  snapshot: DeliverySnapshot,
  runtime: DeliveryRuntime,
): Promise<DeliverEventResult> {
  const { nowMs, wakeUps, isCancelRequested, isIndexedAsWaiting, show, indexState } = runtime
  const { leadMs, recorded, continued } = input
  const isWoken = (): boolean => wakeUps.retryRequested || wakeUps.rowChanged

  if (recorded !== undefined && continued === undefined && !isWoken()) {
    show(snapshot)
    return { state: recorded.state, attempts: recorded.attempts }
  }
  let next = firstAttempt(input, nowMs())
  let hasWaited = next.number > 1 || continued !== undefined
  for (;;) {
    const sleepMs = next.wakeAtMs - nowMs()
    if (sleepMs > 0 || next.dueAtMs !== null) {
      if (!isIndexedAsWaiting()) indexState('waiting')
      hasWaited = true
      snapshot.nextAttemptAtMs = next.dueAtMs ?? next.wakeAtMs + leadMs
      show(snapshot)
    }
    if (sleepMs > 0)
      await runtime.wait(sleepMs, timerSummary(next, snapshot), () => isWoken() || isCancelRequested())

    if (isWoken()) next = { ...next, dueAtMs: null, wakeAtMs: nowMs() }
    while (wakeUps.retryRequested) {
      wakeUps.retryRequested = false
      await runtime.requestRetry()
    }
    // The attempt is requested after all signals so far.
    wakeUps.rowChanged = false
    if (runtime.isHistoryLong() || (isCancelRequested() && next.wakeAtMs > nowMs()))
      await runtime.continueAsNew(inputOfSuccessor(input, next, snapshot))

    snapshot.state = 'in_progress'
    show(snapshot)
    const { number, dueAtMs, queue } = next
    const outcome = await runtime.makeAttempt({ number, dueAtMs, queue })
    if (outcome.state === 'deferred') {
      snapshot.state = number === 1 ? 'pending' : 'waiting'
      next = { number, dueAtMs: null, wakeAtMs: nowMs() + outcome.delayMs, queue: 'slow' }
      continue
    }
    const { state, attempts, failureCode } = outcome
    Object.assign(snapshot, { state, attempts, nextAttemptAtMs: null })
    if (failureCode !== null || state === 'completed') snapshot.lastOutcome = describeOutcome(outcome)
    const isMade = attempts >= number
    const following = { number: attempts + 1, queue: isMade ? queueAfter(outcome) : queue }
    if (outcome.state === 'waiting') {
      const due = dueOf(outcome)
      next = { ...following, dueAtMs: due.dueAtMs, wakeAtMs: nowMs() + due.dueInMs - leadMs }
    } else if (isWoken() && outcome.state !== 'completed') {
      // A retry may have been requested just before or after the end.
      next = { ...following, dueAtMs: null, wakeAtMs: nowMs() }
    } else {
      show(snapshot)
      if (hasWaited) indexState(outcome.state)
      return { state: outcome.state, attempts }
    }
  }
}

/** Returns what the details and the query `deliveryState` show at first. */
export function firstSnapshot({ next, recorded, continued }: DeliverEventInput): DeliverySnapshot {
  if (continued !== undefined) return continued.snapshot
  if (recorded !== undefined) {
    const { state, attempts, failureCode = null, statusCode = null } = recorded
    const lastOutcome = describeOutcome({ state, failureCode, statusCode })
    return { state, attempts, lastOutcome, nextAttemptAtMs: null }
  }
  return {
    state: next.number === 1 ? 'pending' : 'waiting',
    attempts: next.number - 1,
    lastOutcome: null,
    nextAttemptAtMs: next.dueAtMs,
  }
}

function firstAttempt(input: DeliverEventInput, nowMs: number): Next {
  const { next, leadMs, kind, continued } = input
  const byNumber = next.number > 1 ? 'retry' : 'first'
  const queue = input.queue ?? (kind === undefined ? byNumber : queueOfKind(kind))
  if (continued !== undefined) {
    const { number, dueAtMs, wakeAtMs } = continued.next
    return { number, dueAtMs, wakeAtMs, queue }
  }
  const { number, dueAtMs, waitMs } = next
  const dueHereAtMs = waitMs === undefined ? (dueAtMs ?? 0) : nowMs + waitMs
  return { number, dueAtMs, wakeAtMs: dueHereAtMs - leadMs, queue }
}

function queueAfter({ failureCode }: Pick<RowOutcome, 'failureCode'>) {
  return isTimeout(failureCode) ? 'slow' : 'retry'
}

/** Returns the input of the run that goes on with `next`. */
function inputOfSuccessor(
  input: DeliverEventInput,
  { number, dueAtMs, wakeAtMs, queue }: Next,
  snapshot: DeliverySnapshot,
): DeliverEventInput {
  const continued = { next: { number, dueAtMs, wakeAtMs }, snapshot }
  return { ...input, next: { number, dueAtMs }, queue, continued }
}

/** Returns the summary of the timer in the Temporal UI: `attempt 6 of 10 · HTTP 503`. */
function timerSummary({ number }: Next, { lastOutcome }: DeliverySnapshot): string {
  return lastOutcome === null ? attemptName(number) : `${attemptName(number)} · ${lastOutcome}`
}

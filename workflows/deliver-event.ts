import { condition, continueAsNew, setHandler } from '@temporalio/workflow'
import { describeOutcome, isTimeout, type AttemptOutcome } from '../src/domain/attempt-outcome.ts'
import { attemptName, waitAfterAttempt } from '../src/domain/retry-schedule.ts'
import type { AttemptKind } from '../src/domain/task-queues.ts'
import { requestRetry, makeAttempt } from './delivery-activities.ts'
import {
  deliveryStateQuery,
  retrySignal,
  stopSignal,
  type DeliverEventInput,
  type DeliverEventResult,
  type DeliverySnapshot,
  type NextAttempt,
} from './interface.ts'
import { indexState, isIndexedAsWaiting, showDelivery } from './delivery-details.ts'
import { outlastCancellation } from './outlast-cancellation.ts'

/** When an outcome is reported later (the database was unavailable, or another run made the attempt), the wait is shorter. */
const MAX_REPORT_DELAY_MS = 1_000

/**
 * Runs one delivery from its next attempt to its end (spec 3.1 and 8.1): attempt → outcome → wait → attempt …
 * The rows in PostgreSQL are the truth, and signals only wake the workflow to read its row. An exhausted delivery completes
 * the workflow with `failed`: a failed workflow would mean a fault of ours. A cancelled run finishes the attempt under way
 * and leaves the next wait to another run: only the row ends a delivery.
 */
export function deliverEvent(input: DeliverEventInput): Promise<DeliverEventResult> {
  return outlastCancellation((isCancelRequested) => deliver(input, isCancelRequested))
}

async function deliver(
  input: DeliverEventInput,
  isCancelRequested: () => boolean,
): Promise<DeliverEventResult> {
  const { leadMs, recorded } = input
  const snapshot = firstSnapshot(input)
  // `retryRequested`: to be recorded on the row first. `rowChanged`: the row has the request.
  const wakeUps = { retryRequested: false, rowChanged: false }
  setHandler(deliveryStateQuery, () => snapshot)
  setHandler(retrySignal, (message) => {
    if (message?.isRecorded === true) wakeUps.rowChanged = true
    else wakeUps.retryRequested = true
  })
  setHandler(stopSignal, () => {
    wakeUps.rowChanged = true
  })
  const wasWoken = (): boolean => wakeUps.retryRequested || wakeUps.rowChanged

  if (recorded !== undefined) {
    showDelivery(snapshot)
    return recorded
  }
  let next = firstAttempt(input)
  let kind = input.kind ?? (input.next.number > 1 ? 'retry' : 'first')
  let hasWaited = input.next.number > 1 || input.continued !== undefined
  for (;;) {
    const sleepMs = next.wakeAtMs - Date.now()
    if (sleepMs > 0 || next.dueAtMs !== null) {
      if (!isIndexedAsWaiting()) indexState('waiting')
      hasWaited = true
      snapshot.nextAttemptAtMs = next.dueAtMs ?? next.wakeAtMs + leadMs
      showDelivery(snapshot)
      const summary = timerSummary(next.number, snapshot)
      if (sleepMs > 0) await condition(() => wasWoken() || isCancelRequested(), sleepMs, { summary })
    }
    if (isCancelRequested() && !wasWoken() && next.wakeAtMs > Date.now())
      await continueAsNew<typeof deliverEvent>(inputOfSuccessor(input, { next, kind, snapshot }))
    const onlyIfDue = wasWoken() || next.onlyIfDue
    if (wakeUps.retryRequested) await requestRetry(input)
    wakeUps.retryRequested = wakeUps.rowChanged = false

    const before = snapshot.state
    snapshot.state = 'in_progress'
    showDelivery(snapshot)
    const outcome = await makeAttempt(input, next.number, {
      dueAtMs: onlyIfDue ? null : next.dueAtMs,
      onlyIfDue,
      kind,
    })
    if (outcome.state === 'deferred') {
      snapshot.state = before
      const wakeAtMs = Date.now() + outcome.delayMs
      next = { ...next, onlyIfDue, dueAtMs: null, wakeAtMs }
      kind = 'slow'
      continue
    }
    const isUnchanged =
      outcome.state === 'waiting' && outcome.attempts === next.number - 1 && !outcome.immediately
    if (isUnchanged && next.wakeAtMs > Date.now()) {
      snapshot.state = before
      next.onlyIfDue = false
      continue
    }

    Object.assign(snapshot, { state: outcome.state, attempts: outcome.attempts, nextAttemptAtMs: null })
    if (outcome.failureCode !== null || outcome.state === 'completed')
      snapshot.lastOutcome = describeOutcome(outcome)
    if (outcome.state === 'waiting') {
      next = attemptAfter(outcome, leadMs)
      kind = isTimeout(outcome.failureCode) ? 'slow' : 'retry'
      continue
    }
    // A retry may have been requested just before or after the end; the row decides.
    if (wasWoken() && outcome.state !== 'completed') {
      next = { number: outcome.attempts + 1, dueAtMs: null, wakeAtMs: 0, onlyIfDue: true }
      continue
    }
    showDelivery(snapshot)
    if (hasWaited) indexState(outcome.state)
    return { state: outcome.state, attempts: outcome.attempts }
  }
}

function firstAttempt({ next, leadMs, continued }: DeliverEventInput): NextAttempt {
  if (continued !== undefined) return continued.next
  const { number, dueAtMs, waitMs } = next
  const dueHereAtMs = waitMs === undefined ? (dueAtMs ?? 0) : Date.now() + waitMs
  return { number, dueAtMs, wakeAtMs: dueHereAtMs - leadMs, onlyIfDue: false }
}

/** Returns the attempt after a failed one: at once where a retry is requested, otherwise by the schedule. */
function attemptAfter(outcome: Extract<AttemptOutcome, { state: 'waiting' }>, leadMs: number): NextAttempt {
  const number = outcome.attempts + 1
  if (outcome.immediately) return { number, dueAtMs: null, wakeAtMs: 0, onlyIfDue: false }
  const waitMs = waitAfterAttempt(outcome.attempts) ?? 0
  const reportDelayMs = outcome.sinceEndMs > MAX_REPORT_DELAY_MS ? outcome.sinceEndMs : 0
  const dueAtMs = outcome.endedAtMs + waitMs
  return { number, dueAtMs, wakeAtMs: Date.now() + waitMs - reportDelayMs - leadMs, onlyIfDue: false }
}

/** Returns the input of the run that goes on with the wait for `next`. */
function inputOfSuccessor(
  input: DeliverEventInput,
  { next, kind, snapshot }: { next: NextAttempt; kind: AttemptKind; snapshot: DeliverySnapshot },
): DeliverEventInput {
  const { number, dueAtMs } = next
  return { ...input, next: { number, dueAtMs }, kind, continued: { next, snapshot } }
}

function firstSnapshot({ next, recorded, continued }: DeliverEventInput): DeliverySnapshot {
  if (continued !== undefined) return continued.snapshot
  if (recorded !== undefined) {
    const lastOutcome = describeOutcome({ ...recorded, failureCode: null, statusCode: null })
    return { ...recorded, lastOutcome, nextAttemptAtMs: null }
  }
  return {
    state: next.number === 1 ? 'pending' : 'waiting',
    attempts: next.number - 1,
    lastOutcome: null,
    nextAttemptAtMs: next.dueAtMs,
  }
}

/** Returns the summary of the timer in the Temporal UI: `attempt 6 of 10 · HTTP 503`. */
function timerSummary(number: number, snapshot: DeliverySnapshot): string {
  const last = snapshot.lastOutcome === null ? '' : ` · ${snapshot.lastOutcome}`
  return `${attemptName(number)}${last}`
}

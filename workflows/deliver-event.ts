import { condition, setHandler } from '@temporalio/workflow'
import { describeOutcome, isTimeout, type AttemptOutcome } from '../src/domain/attempt-outcome.ts'
import { attemptName, waitAfterAttempt } from '../src/domain/retry-schedule.ts'
import { askForRetry, makeAttempt } from './delivery-activities.ts'
import {
  deliveryStateQuery,
  retrySignal,
  stopSignal,
  type DeliverEventInput,
  type DeliverEventResult,
  type DeliverySnapshot,
} from './messages.ts'
import { isShownAsWaiting, showProgress, showState } from './show-progress.ts'

/**
 * An attempt that ended longer ago than this when it was reported (the database was away, or another run made it) has
 * eaten into the next wait. What is less is the ordinary way of things.
 */
const ORDINARY_REPORT_MS = 1_000

/**
 * The next attempt: its number, when it is due on the database's clock, and at what time of Temporal's to wake up.
 * `onlyIfDue`: whether it is due at all is for the row to say.
 */
type Turn = {
  number: number
  dueAtMs: number | null
  wakeAtMs: number
  onlyIfDue: boolean
}

/**
 * One delivery from its next attempt to its end (spec 3.1 and 8.1): attempt → outcome → wait → attempt …
 * The rows in PostgreSQL are the truth; this workflow keeps time and never loses its place. Signals only wake it up
 * to look at its row. An exhausted delivery completes with `failed`: a failed workflow would mean a fault of ours.
 */
export async function deliverEvent(input: DeliverEventInput): Promise<DeliverEventResult> {
  const { leadMs, recorded } = input
  const snapshot = firstSnapshot(input)
  // What a person wants: to be noted on the row first (`asked`), or noted there already (`woken`).
  const wish = { asked: false, woken: false }
  setHandler(deliveryStateQuery, () => snapshot)
  setHandler(retrySignal, (message) => {
    if (message?.noted === true) wish.woken = true
    else wish.asked = true
  })
  setHandler(stopSignal, () => {
    wish.woken = true
  })
  const called = (): boolean => wish.asked || wish.woken

  if (recorded !== undefined) {
    showProgress(snapshot)
    return recorded
  }
  let turn = firstTurn(input)
  let kind = input.kind ?? (input.next.number > 1 ? 'retry' : 'first')
  let everWaited = input.next.number > 1
  for (;;) {
    const sleepMs = turn.wakeAtMs - Date.now()
    if (sleepMs > 0 || turn.dueAtMs !== null) {
      if (!isShownAsWaiting()) showState('waiting')
      everWaited = true
      snapshot.nextAttemptAtMs = turn.dueAtMs ?? turn.wakeAtMs + leadMs
      showProgress(snapshot)
      if (sleepMs > 0) await condition(called, sleepMs, { summary: inShort(turn.number, snapshot) })
    }
    const onlyIfDue = called() || turn.onlyIfDue
    if (wish.asked) await askForRetry(input)
    wish.asked = wish.woken = false

    const before = snapshot.state
    snapshot.state = 'in_progress'
    showProgress(snapshot)
    const outcome = await makeAttempt(input, turn.number, {
      dueAtMs: onlyIfDue ? null : turn.dueAtMs,
      onlyIfDue,
      kind,
    })
    if (outcome.state === 'deferred') {
      snapshot.state = before
      const wakeAtMs = Date.now() + outcome.delayMs
      turn = { ...turn, onlyIfDue, dueAtMs: null, wakeAtMs }
      kind = 'slow'
      continue
    }
    const nothingNew =
      outcome.state === 'waiting' && outcome.attempts === turn.number - 1 && !outcome.immediately
    if (nothingNew && turn.wakeAtMs > Date.now()) {
      snapshot.state = before
      turn.onlyIfDue = false
      continue
    }

    Object.assign(snapshot, { state: outcome.state, attempts: outcome.attempts, nextAttemptAtMs: null })
    if (outcome.failureCode !== null || outcome.state === 'completed')
      snapshot.lastOutcome = describeOutcome(outcome)
    if (outcome.state === 'waiting') {
      turn = turnAfter(outcome, leadMs)
      kind = isTimeout(outcome.failureCode) ? 'slow' : 'retry'
      continue
    }
    // A person may have asked for a retry in the instants around the end; the row knows.
    if (called() && outcome.state !== 'completed') {
      turn = { number: outcome.attempts + 1, dueAtMs: null, wakeAtMs: 0, onlyIfDue: true }
      continue
    }
    showProgress(snapshot)
    if (everWaited) showState(outcome.state)
    return { state: outcome.state, attempts: outcome.attempts }
  }
}

function firstTurn({ next, leadMs }: DeliverEventInput): Turn {
  const { number, dueAtMs, waitMs } = next
  const dueHereAtMs = waitMs === undefined ? (dueAtMs ?? 0) : Date.now() + waitMs
  return { number, dueAtMs, wakeAtMs: dueHereAtMs - leadMs, onlyIfDue: false }
}

/** The attempt after one that failed: at once where a person asked for it, else when its wait from the schedule is over. */
function turnAfter(outcome: Extract<AttemptOutcome, { state: 'waiting' }>, leadMs: number): Turn {
  const number = outcome.attempts + 1
  if (outcome.immediately) return { number, dueAtMs: null, wakeAtMs: 0, onlyIfDue: false }
  const waitMs = waitAfterAttempt(outcome.attempts) ?? 0
  const eatenMs = outcome.sinceEndMs > ORDINARY_REPORT_MS ? outcome.sinceEndMs : 0
  const dueAtMs = outcome.endedAtMs + waitMs
  return { number, dueAtMs, wakeAtMs: Date.now() + waitMs - eatenMs - leadMs, onlyIfDue: false }
}

function firstSnapshot({ next, recorded }: DeliverEventInput): DeliverySnapshot {
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

/** What the timer says in the Temporal UI: `attempt 6 of 10 · HTTP 503`. */
function inShort(number: number, snapshot: DeliverySnapshot): string {
  const last = snapshot.lastOutcome === null ? '' : ` · ${snapshot.lastOutcome}`
  return `${attemptName(number)}${last}`
}

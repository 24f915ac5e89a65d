import type { AttemptOutcome, FailureCode } from '../../../src/domain/attempt-outcome.ts'
import type { DeliveryState } from '../../../src/domain/delivery-state.ts'

/** What reaches the workflow. A `retry` is on the row before, a `bare retry` (from the Temporal UI) is not. */
export const SIGNALS = ['retry', 'bare retry', 'stop', 'stop without a reason'] as const
export type Signal = (typeof SIGNALS)[number]

/** What happens in a wait. After the first seven its timer fires, by Temporal's clock. */
export const WAIT_EVENTS = [
  'timer',
  'clock of the database set back',
  'clock of Temporal set forward',
  'clock of Temporal set back',
  'stop without a signal',
  'success of another run',
  'failure of another run',
  'cancel',
  ...SIGNALS,
] as const
export type WaitEvent = (typeof WAIT_EVENTS)[number]

/** How a requested attempt ends. `not claimed`: the row refuses the claim, or is final. */
export const ATTEMPT_EVENTS = [
  'deferred',
  'sent to the slow queue',
  'confirmed',
  'refused',
  'timed out',
  'not claimed',
] as const
export type AttemptEvent = (typeof ATTEMPT_EVENTS)[number]

type Attempt = { event: AttemptEvent; meanwhile: Signal | null }

/** The events to choose from. */
export type Alphabet = {
  wait: (isCancelled: boolean) => readonly WaitEvent[]
  attempt: (isClaimed: boolean, isSlow: boolean) => readonly Attempt[]
  /** While a retry is recorded on the row. */
  recording: readonly (Signal | null)[]
}

export function createAlphabet(events: {
  wait: readonly WaitEvent[]
  attempt: readonly AttemptEvent[]
  /** That come during an attempt. */
  signals: readonly Signal[]
}): Alphabet {
  const meanwhile = [null, ...events.signals]
  const attempts = (isClaimed: boolean, isSlow: boolean): readonly Attempt[] =>
    events.attempt
      .filter((event) => isPossible(event, isClaimed, isSlow))
      .flatMap((event) => meanwhile.map((signal) => ({ event, meanwhile: signal })))
  const claimed = { slow: attempts(true, true), other: attempts(true, false) }
  const refused = { slow: attempts(false, true), other: attempts(false, false) }
  const withoutCancel = events.wait.filter((event) => event !== 'cancel')
  return {
    wait: (isCancelled) => (isCancelled ? withoutCancel : events.wait),
    attempt: (isClaimed, isSlow) => (isClaimed ? claimed : refused)[isSlow ? 'slow' : 'other'],
    recording: meanwhile,
  }
}

function isPossible(event: AttemptEvent, isClaimed: boolean, isSlow: boolean): boolean {
  if (event === 'deferred') return true
  if (event === 'sent to the slow queue') return !isSlow
  return isClaimed === (event !== 'not claimed')
}

/**
 * A row of `delivery` as its workflow meets it: it refuses claims before its time, and users change it. Instants are on
 * the clock of the database.
 */
export type ModelRow = {
  state: DeliveryState
  attempts: number
  /** When the next attempt is due, where one waits. */
  dueAtMs: number
  retryRequested: boolean
  isWebhookLive: boolean
}

/** Waits after the failed attempts 1 and 2; the third is the last. */
const WAITS_MS = [1_000, 300_000]

/** A claim may be so much too early. */
const DUE_TOLERANCE_MS = 3

export function rowOf(row: Partial<ModelRow>): ModelRow {
  return { state: 'pending', attempts: 0, dueAtMs: 0, retryRequested: false, isWebhookLive: true, ...row }
}

/** Claims the row for attempt `number`; returns false where it refuses. */
export function claim(row: ModelRow, number: number, nowMs: number): boolean {
  const isDue = row.state === 'waiting' && row.dueAtMs <= nowMs + DUE_TOLERANCE_MS
  if (row.attempts !== number - 1 || !(row.state === 'pending' || isDue)) return false
  row.state = 'in_progress'
  return true
}

/** Gives the row back: no attempt was made after all. */
export function release(row: ModelRow): void {
  row.state = row.attempts === 0 ? 'pending' : 'waiting'
}

/** Returns what the activity reports of the row. */
export function outcomeOf(row: ModelRow, nowMs: number, failureCode: FailureCode | null): AttemptOutcome {
  const { state, attempts, dueAtMs } = row
  const shared = { attempts, failureCode, statusCode: null }
  if (state === 'completed' || state === 'failed' || state === 'stopped') return { state, ...shared }
  return { state: 'waiting', ...shared, dueAtMs, dueInMs: Math.max(0, dueAtMs - nowMs) }
}

/** Records an attempt, and moves the row on. */
export function record(row: ModelRow, succeeded: boolean, nowMs: number): void {
  const waitMs = row.retryRequested ? 0 : (WAITS_MS[row.attempts] ?? null)
  row.attempts++
  row.retryRequested = false
  row.dueAtMs = nowMs + (waitMs ?? 0)
  if (succeeded) row.state = 'completed'
  else if (!row.isWebhookLive) row.state = 'stopped'
  else row.state = waitMs === null ? 'failed' : 'waiting'
}

/** A user requests the next attempt at once. */
export function requestRetry(row: ModelRow, nowMs: number): void {
  if (row.state === 'completed' || row.state === 'pending') return
  row.isWebhookLive = true
  if (row.state === 'in_progress') row.retryRequested = true
  else Object.assign(row, { state: 'waiting', dueAtMs: nowMs })
}

/** A user switches the webhook off, or discards the delivery. */
export function stop(row: ModelRow): void {
  row.isWebhookLive = false
  if (row.state === 'pending' || row.state === 'waiting' || row.state === 'failed') row.state = 'stopped'
}

import type { AttemptOutcome, FailureCode } from '../../../src/domain/attempt-outcome.ts'
import type { DeliveryState } from '../../../src/domain/delivery-state.ts'

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

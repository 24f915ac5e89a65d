import type { FailureCode } from './attempt-outcome.ts'

/** Notification 1: failing for five minutes · 2: the first delivery is permanently failed (spec 6.4). */
export type NotificationKind = 1 | 2

export type NotificationChannel = 'email' | 'push'

/** How many notifications of each kind are in each state. */
export type NotificationCounts = { kind: NotificationKind; state: NotificationState; count: number }[]

/** Notifications that are not at their end. */
export function unsettled(counts: NotificationCounts): number {
  const open = counts.filter(({ state }) => state === 'pending' || state === 'sending')
  return open.reduce((sum, { count }) => sum + count, 0)
}

/**
 * `pending` to be sent · `sending` claimed by a try that may have handed it over · `sent` accepted by the mail server
 * or push service · `failed` for good, not accepted · `unknown` whether it was accepted; never sent again.
 */
export type NotificationState = 'pending' | 'sending' | 'sent' | 'failed' | 'unknown'

/** A webhook's failures since its last success: when the first of them ended (Unix ms), and how long ago that is. */
export type Streak = { sinceMs: number; forMs: number }

/** What an incident's workflow sees of its row and webhook: numbers and short codes only. */
export type IncidentLook = {
  open: boolean
  /** The webhook is enabled and not deleted; otherwise nobody is notified. */
  live: boolean
  openedAtMs: number
  /** A delivery has been marked permanently failed. */
  exhausted: boolean
  /** When (Unix ms) each notification was addressed to its recipients; null where it was not. */
  notifiedAtMs: Record<NotificationKind, number | null>
  /** What notification 1 waits for; null when it has gone, or the latest attempt succeeded. */
  streak: Streak | null
  waiting: number
  failed: number
  failureCode: FailureCode | null
  statusCode: number | null
}

/** Waits for a streak to become `notifyAfterMs` old, on the engine's clock. */
export type StreakTimer = { sinceMs: number; dueAtMs: number }

/**
 * The timer after the workflow looked at `nowMs` of its clock and saw `streak` (null: the latest attempt succeeded).
 * The same streak keeps its time; a new one is waited for anew, so that only five minutes without a success count.
 */
export function nextTimer(
  timer: StreakTimer | null,
  streak: Streak | null,
  nowMs: number,
  notifyAfterMs: number,
): StreakTimer | null {
  if (streak === null) return null
  if (timer?.sinceMs === streak.sinceMs) return timer
  return { sinceMs: streak.sinceMs, dueAtMs: nowMs + Math.max(0, notifyAfterMs - streak.forMs) }
}

const FIRST_PAUSE_MS = 30_000
const LONGEST_PAUSE_MS = 15 * 60_000

/** When what is left to be sent is tried again; only a try that was made moves it on. */
export type SendingTimer = { atMs: number; round: number }

export function nextRound(
  timer: SendingTimer | null,
  left: number,
  tried: boolean,
  nowMs: number,
): SendingTimer | null {
  if (left === 0) return null
  if (timer !== null && !tried) return timer
  const round = (timer?.round ?? 1) + 1
  return { atMs: nowMs + pauseBeforeRound(round), round }
}

/** Pause before sending round `round` (2 or more) of what was refused: 30 s, doubling up to a quarter of an hour. */
function pauseBeforeRound(round: number): number {
  return Math.min(FIRST_PAUSE_MS * 2 ** (round - 2), LONGEST_PAUSE_MS)
}

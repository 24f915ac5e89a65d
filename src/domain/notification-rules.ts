import type { FailureCode } from './attempt-outcome.ts'

/** Notification 1: failing for five minutes · 2: the first delivery is permanently failed (spec 6.4). */
export type NotificationKind = 1 | 2

export type NotificationChannel = 'email' | 'push'

/** Numbers of notifications of each kind in each state. */
export type NotificationCounts = { kind: NotificationKind; state: NotificationState; count: number }[]

/** Deliveries that an incident counts of each state. */
export const MAX_COUNTED = 100_000

/** `12,345`, or `more than 100,000`. */
export function formatCount(count: number): string {
  const most = Math.min(count, MAX_COUNTED).toLocaleString('en-GB')
  return count > MAX_COUNTED ? `more than ${most}` : most
}

/** Returns the number of notifications that are not final. */
export function unsettled(counts: NotificationCounts): number {
  const open = counts.filter(({ state }) => state === 'pending' || state === 'sending')
  return open.reduce((sum, { count }) => sum + count, 0)
}

/**
 * `pending` to be sent · `sending` claimed by a try that may have handed it over · `sent` accepted by the mail server
 * or push service · `failed` for good, not accepted · `unknown` whether it was accepted; never sent again.
 */
export type NotificationState = 'pending' | 'sending' | 'sent' | 'failed' | 'unknown'

/** The failures of a webhook since its last success: when the first one ended (Unix ms), and how long ago that is. */
export type Streak = { sinceMs: number; forMs: number }

/** The state of an incident for its workflow: numbers and short codes only. */
export type IncidentEvaluation = {
  open: boolean
  /** The webhook is enabled and not deleted; otherwise no one is notified. */
  live: boolean
  openedAtMs: number
  /** When (Unix ms) each notification was addressed to its recipients; null where it was not. */
  notifiedAtMs: Record<NotificationKind, number | null>
  /** What notification 1 waits for; null once it was addressed, or the latest attempt succeeded. */
  streak: Streak | null
  waiting: number
  failed: number
  failureCode: FailureCode | null
  statusCode: number | null
}

/**
 * Returns the notifications that an incident is due, each of them once: the first when the streak that began at `dueFor`
 * (Unix ms; null: no timer fired) still lasts, the second once a delivery has been marked permanently failed.
 */
export function dueKinds(
  incident: {
    firstNotifiedAt: Date | null
    secondNotifiedAt: Date | null
    exhausted: boolean
    streak: Streak | null
  },
  dueFor: number | null,
): NotificationKind[] {
  const { firstNotifiedAt, secondNotifiedAt, exhausted, streak } = incident
  const kinds: NotificationKind[] = []
  if (firstNotifiedAt === null && streak !== null && streak.sinceMs === dueFor) kinds.push(1)
  if (secondNotifiedAt === null && exhausted) kinds.push(2)
  return kinds
}

/** Waits for a streak to become `notifyAfterMs` old, on Temporal's clock. */
export type StreakTimer = { sinceMs: number; dueAtMs: number }

/**
 * Returns the timer after an evaluation at `nowMs` of the workflow's clock with `streak` (null: the latest attempt
 * succeeded). The same streak keeps its timer; a new one starts another, so that only time without a success counts.
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

const INITIAL_DELAY_MS = 30_000
const MAX_DELAY_MS = 15 * 60_000

/** When the unsettled notifications are sent again. */
export type SendingTimer = { atMs: number; round: number }

/** Returns the timer of the next round; it advances only after a round was `tried`. */
export function nextRound(
  timer: SendingTimer | null,
  left: number,
  tried: boolean,
  nowMs: number,
): SendingTimer | null {
  if (left === 0) return null
  if (timer !== null && !tried) return timer
  const round = (timer?.round ?? 1) + 1
  return { atMs: nowMs + delayBeforeRound(round), round }
}

/** Returns the delay before round `round` (2 or more): 30 s, doubling up to a quarter of an hour. */
function delayBeforeRound(round: number): number {
  return Math.min(INITIAL_DELAY_MS * 2 ** (round - 2), MAX_DELAY_MS)
}

export type Recipient = { channel: NotificationChannel; recipient: string; name: string | null }

type Audience = {
  organisation: { email: string; supportEmail: string | null }
  members: readonly { name: string; email: string; pushSubscriptions: readonly string[] }[]
}

/**
 * Returns the recipients of an incident's notifications (spec 6.4): the organisation's address (`supportEmail`, else
 * `email`), the members that may change its settings, and their push subscriptions. A shared address gets one message.
 */
export function recipientsOf({ organisation, members }: Audience): Recipient[] {
  const own = { email: organisation.supportEmail ?? organisation.email, name: null }
  const byAddress = new Map<string, Recipient>()
  for (const { email, name } of [own, ...members]) {
    const address = email.toLowerCase()
    if (!byAddress.has(address)) byAddress.set(address, { channel: 'email', recipient: email, name })
  }
  const push = members.flatMap(({ name, pushSubscriptions }) =>
    pushSubscriptions.map((id): Recipient => ({ channel: 'push', recipient: id, name })),
  )
  return [...byAddress.values(), ...push]
}

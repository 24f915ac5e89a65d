import type { Arrival } from '../harness/receiver.ts'
import { groupByDelivery } from './ledger.ts'

/** Retry `attempt` of a delivery came `lateMs` after the end of the attempt before it and the wait of the schedule. */
export type Retry = { attempt: number; lateMs: number }

/** Waits before attempts 2 to 5 in ms. Written down again: what is measured must not be its own measure. */
const WAITS_MS = [1_000, 2_000, 4_000, 8_000]

/**
 * Both ends are noted by the receiver. It notes the end of an attempt just before its answer leaves, so a retry that
 * comes at the exact instant is late by the time that the answer was on its way, and never early.
 */
export function retryLateness(arrivals: readonly Arrival[]): Retry[] {
  return [...groupByDelivery(arrivals).values()].flatMap((posts) =>
    posts.slice(1).flatMap((post, index) => {
      const endedAt = posts[index]?.answeredAt ?? null
      const waitMs = WAITS_MS[index]
      if (endedAt === null || waitMs === undefined) return []
      return [{ attempt: index + 2, lateMs: post.arrivedAt - endedAt - waitMs }]
    }),
  )
}

/** In words; nothing if no retry came before its time. */
export function earlyRetries(retries: readonly Retry[]): string[] {
  const early = retries.filter(({ lateMs }) => lateMs < 0)
  if (early.length === 0) return []
  const most = Math.max(...early.map(({ lateMs }) => -lateMs))
  return [`${early.length} of ${retries.length} retries early, by up to ${most.toFixed(3)} ms`]
}

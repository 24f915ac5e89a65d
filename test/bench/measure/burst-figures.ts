import type { PublishedEvent } from '../harness/generator.ts'
import type { Arrival } from '../harness/receiver.ts'
import { rounded } from './distribution.ts'
import { firstPosts, settlePublished, type Ledger } from './ledger.ts'

/** Of events that were published as fast as they were acknowledged. Times are from the first request on. */
export type BurstFigures = Ledger & {
  publishedPerSecond: number
  /** Until the last arrival. */
  tookMs: number
  /** Deliveries that arrived. */
  perSecond: number
}

export function burstFigures(
  published: readonly PublishedEvent[],
  arrivals: readonly Arrival[],
): BurstFigures {
  const startedAt = Math.min(...published.map(({ sentAt }) => sentAt))
  const acknowledgedMs = Math.max(...published.map(({ acknowledgedAt }) => acknowledgedAt)) - startedAt
  const posts = firstPosts(published, arrivals)
  const tookMs = Math.max(...posts.map(({ arrival }) => arrival.arrivedAt)) - startedAt
  return {
    publishedPerSecond: rounded((published.length / acknowledgedMs) * 1_000),
    tookMs: rounded(tookMs),
    perSecond: rounded((posts.length / tookMs) * 1_000),
    ...settlePublished(published, arrivals),
  }
}

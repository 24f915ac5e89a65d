import type { Logger } from '../../observability/logger.ts'
import { settlesWithin } from '../../timers.ts'

/** Bounds the deliveries of all processes that wait for their first attempt. */
export type BacklogLimit = {
  /**
   * True while the limit is reached. At the limit the deliveries are counted again first. False when counting fails:
   * publishing does not depend on it.
   */
  isReached(): Promise<boolean>
  /** Adds deliveries that this process has committed. */
  committed(deliveries: number): void
}

/**
 * How long a count is used: `ttlMs`, or a multiple of the duration of counting, so that a long backlog is counted less
 * often. Shorter at the limit, where requests are refused.
 */
const BELOW_LIMIT = { ttlMs: 1_000, durationFactor: 20 }
const AT_LIMIT = { ttlMs: 200, durationFactor: 5 }

/** A request at the limit waits this long for a new count; then the last one decides. */
const COUNT_TIMEOUT_MS = 1_000

/**
 * Builds the limit. `count` counts the waiting deliveries up to `limit` (0: no limit); it runs when an event is published,
 * one call at a time. Deliveries committed since are added to the last count. `nowMs` is a monotonic clock.
 */
export function createBacklogLimit(options: {
  limit: number
  count: (limit: number) => Promise<number>
  logger: Logger
  nowMs?: () => number
}): BacklogLimit {
  const { limit, count, logger, nowMs = () => performance.now() } = options
  let counted = 0
  let committedSince = 0
  let countedAtMs = -Infinity
  let countDurationMs = 0
  let counting: Promise<void> | null = null

  const isFull = (): boolean => counted + committedSince >= limit
  const isStale = (): boolean => {
    const { ttlMs, durationFactor } = isFull() ? AT_LIMIT : BELOW_LIMIT
    return nowMs() - countedAtMs > Math.max(ttlMs, durationFactor * countDurationMs)
  }

  async function countAgain(): Promise<void> {
    const startedAtMs = nowMs()
    const committedBefore = committedSince
    try {
      counted = await count(limit)
      // Deliveries committed meanwhile may be in the count: they are rather counted twice than not at all.
      committedSince -= committedBefore
    } catch (error) {
      counted = committedSince = 0
      logger.warn({ event: 'publish.backlog_failed', err: error })
    }
    countedAtMs = nowMs()
    countDurationMs = countedAtMs - startedAtMs
    counting = null
  }

  return {
    async isReached() {
      if (limit === 0) return false
      if (isStale()) counting ??= countAgain()
      if (isFull() && counting !== null) await settlesWithin(counting, COUNT_TIMEOUT_MS)
      return isFull()
    },
    committed(deliveries) {
      committedSince += deliveries
    },
  }
}

import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '../logger.ts'

/** Bounds the deliveries that wait for their first attempt, those of all processes together. */
export type BacklogLimit = {
  /**
   * True while as many wait as may. Costs nothing below the limit; at it, what waits is counted again before anybody is
   * refused. False when it cannot be counted: publishing does not depend on this.
   */
  isReached(): Promise<boolean>
  /** This process has committed so many more. */
  committed(deliveries: number): void
}

/**
 * How long the last count is used: `ttlMs`, or so many times as long as counting took, so that a long backlog is counted
 * less often. At the limit sooner, since somebody waits for its end.
 */
const BELOW_LIMIT = { ttlMs: 1_000, timesDuration: 20 }
const AT_LIMIT = { ttlMs: 200, timesDuration: 5 }

/** How long a request at the limit waits to be counted for; after that the last count decides. */
const COUNT_TIMEOUT_MS = 1_000

/**
 * `count` counts what waits, up to `limit` (0: no limit). It is called when something is published, once at a time.
 * Between two counts, what this process commits is added to the last one. `nowMs` is a clock that never goes back.
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
  let tookMs = 0
  let counting: Promise<void> | null = null

  const isFull = (): boolean => counted + committedSince >= limit
  const isStale = (): boolean => {
    const { ttlMs, timesDuration } = isFull() ? AT_LIMIT : BELOW_LIMIT
    return nowMs() - countedAtMs > Math.max(ttlMs, timesDuration * tookMs)
  }

  async function countAgain(): Promise<void> {
    const startedAtMs = nowMs()
    const committedBefore = committedSince
    try {
      counted = await count(limit)
      // What was committed meanwhile may be in the count or not. Better twice than not at all.
      committedSince -= committedBefore
    } catch (error) {
      counted = committedSince = 0
      logger.warn({ event: 'publish.no_backlog', err: error }, 'publish.no_backlog')
    }
    countedAtMs = nowMs()
    tookMs = countedAtMs - startedAtMs
    counting = null
  }

  return {
    async isReached() {
      if (limit === 0) return false
      if (isStale()) counting ??= countAgain()
      if (!isFull() || counting === null) return isFull()
      const timer = new AbortController()
      const timeout = delay(COUNT_TIMEOUT_MS, undefined, { signal: timer.signal }).catch(() => undefined)
      await Promise.race([counting, timeout])
      timer.abort()
      return isFull()
    },
    committed(deliveries) {
      committedSince += deliveries
    },
  }
}

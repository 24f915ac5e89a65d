import { setTimeout as delay } from 'node:timers/promises'

/** Starts that may wait a moment. */
export type StaggeredStarts = {
  /** Returns at once; `start` never rejects. */
  add(start: () => Promise<unknown>): void
  /** Returns when none is left. */
  idle(): Promise<void>
}

/** Shorter than the shortest wait of the retry schedule. */
const MAX_DELAY_MS = 600
const INTERVAL_MS = 18

/**
 * POSTs that time out end together. Started together, their workflows would leave Temporal no time for anything else:
 * they start INTERVAL_MS apart, the first at once, none later than MAX_DELAY_MS.
 */
export function createStaggeredStarts({
  nowMs = () => performance.now(),
  sleep = (ms: number): Promise<void> => delay(ms),
} = {}): StaggeredStarts {
  const running = new Set<Promise<unknown>>()
  let lastAtMs = -Infinity
  return {
    add(start) {
      const now = nowMs()
      lastAtMs = Math.min(Math.max(now, lastAtMs + INTERVAL_MS), now + MAX_DELAY_MS)
      const wait = lastAtMs > now ? sleep(lastAtMs - now) : Promise.resolve()
      const task = wait.then(start).finally(() => running.delete(task))
      running.add(task)
    },
    async idle() {
      await Promise.all(running)
    },
  }
}

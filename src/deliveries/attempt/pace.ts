import { setTimeout as delay } from 'node:timers/promises'

/** Spreads over time what comes together. */
export type Pace = {
  /** Returns at once for the first, for others `intervalMs` after the one before; at once when `signal` aborts. */
  next(signal?: AbortSignal): Promise<void>
}

type Sleep = (ms: number, signal?: AbortSignal) => Promise<void>

/**
 * For what endpoints that hang bring upon Temporal: their time-outs together and the starts of their next workflows, 25 a
 * second. So they take a share of a small Temporal that leaves room for all others, however many they are.
 */
export const TIMEOUT_INTERVAL_MS = 100

/** None waits longer than `maxDelayMs`. */
export function createPace(options: {
  intervalMs: number
  maxDelayMs?: number
  nowMs?: () => number
  sleep?: Sleep
}): Pace {
  const {
    intervalMs,
    maxDelayMs = Infinity,
    nowMs = () => performance.now(),
    sleep = delayUntilAborted,
  } = options
  let lastAtMs = -Infinity
  return {
    async next(signal) {
      if (signal?.aborted === true) return
      const now = nowMs()
      lastAtMs = Math.min(Math.max(now, lastAtMs + intervalMs), now + maxDelayMs)
      if (lastAtMs > now) await sleep(lastAtMs - now, signal)
    },
  }
}

async function delayUntilAborted(ms: number, signal?: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined)
}

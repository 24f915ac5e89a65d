import { setTimeout as delay } from 'node:timers/promises'

/** Spaces calls out in time. */
export type Pace = {
  /** Returns at once for the first, for others `intervalMs` after the one before; at once when `signal` aborts. */
  next(signal?: AbortSignal): Promise<void>
}

type Sleep = (ms: number, signal?: AbortSignal) => Promise<void>

/**
 * Interval of the calls to Temporal for endpoints that hang, reports of time-outs and workflow starts together: ten a
 * second in each process leave a small Temporal room for all others.
 */
export const TIMEOUT_INTERVAL_MS = 100

/** Builds a pace at which no call waits longer than `maxDelayMs`. */
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

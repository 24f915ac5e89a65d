import { processTimers, sleep, type Timers } from '../../timers.ts'

/** Spaces calls out in time. */
export type Pace = {
  /** Returns at once for the first, for others `intervalMs` after the one before; at once when `signal` aborts. */
  next(signal?: AbortSignal): Promise<void>
  /** Returns for how many ms the next call would wait. */
  waitMs(): number
}

/**
 * Interval of the calls to Temporal for endpoints that hang, reports of time-outs and workflow starts together: ten a
 * second in each process leave a small Temporal room for all others.
 */
export const TIMEOUT_INTERVAL_MS = 100

/** Builds a pace at which no call waits longer than `maxDelayMs`. */
export function createPace(options: { intervalMs: number; maxDelayMs?: number; timers?: Timers }): Pace {
  const { intervalMs, maxDelayMs = Infinity, timers = processTimers } = options
  let nextAtMs = -Infinity
  const waitMs = (): number => Math.min(maxDelayMs, Math.max(0, nextAtMs - timers.nowMs()))
  return {
    waitMs,
    async next(signal) {
      if (signal?.aborted === true) return
      const wait = waitMs()
      nextAtMs = timers.nowMs() + wait + intervalMs
      if (wait > 0) await sleep(timers, wait, signal)
    },
  }
}

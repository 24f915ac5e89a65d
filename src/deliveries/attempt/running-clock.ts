const TICK_MS = 100

/** A longer stall of the event loop counts for no more. */
const MAX_STEP_MS = 200

/**
 * Returns a clock of the milliseconds during which this process runs. While it is paused, or starved of processor time,
 * answers arrive unread, and no endpoint is late. `nowMs` is any monotonic clock.
 */
export function createRunningClock(nowMs: () => number = () => performance.now()): () => number {
  let tickedAtMs = nowMs()
  let totalMs = 0

  function tick(): void {
    const now = nowMs()
    totalMs += Math.min(now - tickedAtMs, MAX_STEP_MS)
    tickedAtMs = now
  }

  setInterval(tick, TICK_MS).unref()
  return () => totalMs + Math.min(nowMs() - tickedAtMs, MAX_STEP_MS)
}

/** Knows when this process did not run for a while: stopped with its machine, swapped out, or starved. */
export type PauseWatch = {
  /** Whether a pause has ended since `sinceMs` on `performance.now()`, this instant included. */
  pausedSince(sinceMs: number): boolean
  stop(): void
}

const TICK_MS = 500

/** What a busy event loop may take between two ticks without having been paused. */
const MIN_PAUSE_MS = 2_000

export function createPauseWatch(nowMs: () => number = () => performance.now()): PauseWatch {
  let tickedAtMs = nowMs()
  let pauseEndedAtMs = -Infinity

  function tick(): void {
    const now = nowMs()
    if (now - tickedAtMs > TICK_MS + MIN_PAUSE_MS) pauseEndedAtMs = now
    tickedAtMs = now
  }

  const ticking = setInterval(tick, TICK_MS).unref()
  return {
    pausedSince(sinceMs) {
      tick()
      return pauseEndedAtMs >= sinceMs
    },
    stop: () => clearInterval(ticking),
  }
}

/** Detects pauses of this process: stopped with its machine, swapped out, or starved of processor time. */
export type PauseWatch = {
  /** True when a pause has ended since `sinceMs` on `performance.now()`, or just now. */
  pausedSince(sinceMs: number): boolean
  stop(): void
}

const TICK_MS = 500

/** A shorter delay between two ticks is that of a busy event loop. */
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

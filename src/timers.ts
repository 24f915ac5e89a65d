/** Monotonic time and timers: of the process, or of a simulation. */
export type Timers = {
  nowMs: () => number
  /** Calls `run` once, `ms` from now; the returned function cancels that. */
  after: (ms: number, run: () => void) => () => void
}

export const processTimers: Timers = {
  nowMs: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
}

/** Calls `run` every `ms`, until the returned function is called. */
export function every(timers: Timers, ms: number, run: () => void): () => void {
  const repeat = (): void => {
    cancel = timers.after(ms, repeat)
    run()
  }
  let cancel = timers.after(ms, repeat)
  return () => cancel()
}

/** Returns after `ms`, or at once when `signal` aborts. */
export function sleep(timers: Timers, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve()
    const end = (): void => {
      cancel()
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const cancel = timers.after(ms, end)
    signal?.addEventListener('abort', end)
  })
}

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

/** A timer that fires so much late was held up by a pause of this process, or for want of a processor. */
const LATE_MS = 50

/** Within that the sockets are read after a pause, before which timers fire. */
export const READ_DELAY_MS = 250

/**
 * Calls `run` after `ms`; where the timer fires late, `againMs` after that, for what could not be done or read meanwhile.
 * A busy event loop may not have read for long when a timer fires in time: what has come is read before the immediate.
 * The returned function cancels it.
 */
export function afterPauses(ms: number, run: () => void, againMs = READ_DELAY_MS): () => void {
  const dueAtMs = performance.now() + ms
  const runWhenRead = (): void => {
    const immediate = setImmediate(run)
    cancel = () => clearImmediate(immediate)
  }
  const timer = setTimeout(() => {
    if (performance.now() - dueAtMs <= LATE_MS) return runWhenRead()
    const again = setTimeout(runWhenRead, againMs)
    cancel = () => clearTimeout(again)
  }, ms)
  let cancel = (): void => clearTimeout(timer)
  return () => cancel()
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

/** Spaces calls out in time. */
export type Pace = {
  /** Returns at once for the first, for others `intervalMs` after the one before; at once when `signal` aborts. */
  next(signal?: AbortSignal): Promise<void>
  /** Returns for how many ms the next call would wait. */
  waitMs(): number
}

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

/** Waits until `work` has settled, `ms` at most. Returns whether it has; a later rejection of it is swallowed. */
export function settlesWithin(work: Promise<unknown>, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), ms)
    const end = (): void => {
      clearTimeout(timer)
      resolve(true)
    }
    work.then(end, end)
  })
}

/**
 * Calls `run` with the reason when one of `signals` aborts, or has; the returned function cancels that.
 * `AbortSignal.any` would leave a trace of each call in a signal that lasts.
 */
export function onAbort(
  signals: readonly (AbortSignal | undefined)[],
  run: (reason: unknown) => void,
): () => void {
  const listener = (): void => run(signals.find((signal) => signal?.aborted)?.reason)
  for (const signal of signals) signal?.addEventListener('abort', listener)
  if (signals.some((signal) => signal?.aborted)) listener()
  return () => {
    for (const signal of signals) signal?.removeEventListener('abort', listener)
  }
}

/**
 * Settles as `work` does, or rejects with the reason of `signal` as soon as that is aborted, whichever is first.
 * `work` is not stopped by this; a later rejection of it is swallowed.
 */
export async function raceAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let stopListening = (): void => undefined
  const aborted = new Promise<never>((_resolve, reject) => {
    stopListening = onAbort([signal], reject)
  })
  try {
    // In this order, an earlier abort wins over work that is done at once.
    return await Promise.race([aborted, work])
  } finally {
    stopListening()
  }
}

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

/** Detects pauses of this process: stopped with its machine, swapped out, or starved of processor time. */
export type PauseWatch = {
  /** True when a `short` or a `long` pause has ended since `sinceMs` on `performance.now()`, or just now. */
  pausedSince(sinceMs: number, kind: 'short' | 'long'): boolean
  stop(): void
}

const PAUSE_TICK_MS = 500

/** A shorter delay than the `long` one between two ticks is that of a busy event loop. */
const MIN_PAUSE_MS = { short: 1_000, long: 2_000 }

export function createPauseWatch(nowMs: () => number = () => performance.now()): PauseWatch {
  let tickedAtMs = nowMs()
  const endedAtMs = { short: -Infinity, long: -Infinity }

  function tick(): void {
    const now = nowMs()
    const ms = now - tickedAtMs - PAUSE_TICK_MS
    if (ms > MIN_PAUSE_MS.short) endedAtMs.short = now
    if (ms > MIN_PAUSE_MS.long) endedAtMs.long = now
    tickedAtMs = now
  }

  const ticking = setInterval(tick, PAUSE_TICK_MS).unref()
  return {
    pausedSince(sinceMs, kind) {
      tick()
      return endedAtMs[kind] >= sinceMs
    },
    stop: () => clearInterval(ticking),
  }
}

import { isDatabaseUnavailable } from './db/connection/connection-errors.ts'
import type { Logger } from './observability/logger.ts'
import { processTimers, type Timers } from './timers.ts'

/** Runs a function repeatedly, in passes that do not overlap. */
export type PollLoop = {
  start(): void
  /** Has the next pass begin now, or as soon as the running one has ended. Does nothing once stopped. */
  wake(): void
  /** Aborts the signal of the running pass, and returns when it has ended. */
  stop(): Promise<void>
  /** Returns for how many ms the current pass has run; null between passes. */
  runningForMs(): number | null
}

/** The longest interval after errors, unless that of the loop is longer. */
const MAX_PAUSE_MS = 1_000

/**
 * Builds the loop. The next pass follows at once when `run` returns true, otherwise after `intervalMs`. Errors of `run` are
 * logged as `event`; with each in a row the interval doubles.
 */
export function createPollLoop(options: {
  intervalMs: number
  run: (signal: AbortSignal) => Promise<boolean>
  event: string
  logger: Logger
  timers?: Timers
}): PollLoop {
  const { intervalMs, run, event, logger, timers = processTimers } = options
  const stopping = new AbortController()
  let cancel: (() => void) | null = null
  let running: Promise<void> = Promise.resolve()
  let beganAtMs: number | null = null
  let isWoken = false
  let errorPauseMs = intervalMs
  const pauseMs = (delayMs: number): number => (isWoken ? 0 : delayMs)

  async function pass(): Promise<void> {
    cancel = null
    isWoken = false
    beganAtMs = timers.nowMs()
    let delayMs = intervalMs
    try {
      if (await run(stopping.signal)) delayMs = 0
      errorPauseMs = intervalMs
    } catch (error) {
      if (stopping.signal.aborted) return
      errorPauseMs = Math.max(intervalMs, Math.min(errorPauseMs * 2, MAX_PAUSE_MS))
      delayMs = errorPauseMs
      const fields = { event, err: error }
      if (isDatabaseUnavailable(error)) logger.warn(fields)
      else logger.error(fields)
    } finally {
      beganAtMs = null
    }
    schedule(pauseMs(delayMs))
  }

  function schedule(delayMs: number): void {
    if (stopping.signal.aborted) return
    cancel = timers.after(delayMs, () => {
      running = pass()
    })
  }

  return {
    start: () => schedule(0),
    wake() {
      // Later ones must not put off what an earlier one has scheduled.
      const isFirst = !isWoken
      isWoken = true
      if (!isFirst || cancel === null) return
      cancel()
      schedule(0)
    },
    async stop() {
      stopping.abort()
      cancel?.()
      await running
    },
    runningForMs: () => (beganAtMs === null ? null : timers.nowMs() - beganAtMs),
  }
}

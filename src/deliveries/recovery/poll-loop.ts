import { isDatabaseAway } from '../../db/connection-errors.ts'
import type { Logger } from '../../logger.ts'

/** Runs something again and again, in passes that do not overlap. */
export type PollLoop = {
  start(): void
  /** Aborts the signal of the pass that runs, and returns when it has ended. */
  stop(): Promise<void>
  /** For how long the pass that runs has been running; null between passes. */
  runningForMs(): number | null
}

/**
 * `run` returns whether more is waiting, and the next pass follows at once; otherwise after `intervalMs`. What it throws
 * is logged as `event`.
 */
export function createPollLoop(options: {
  intervalMs: number
  run: (signal: AbortSignal) => Promise<boolean>
  event: string
  logger: Logger
}): PollLoop {
  const { intervalMs, run, event, logger } = options
  const stopping = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> = Promise.resolve()
  let beganAtMs: number | null = null

  async function pass(): Promise<void> {
    beganAtMs = performance.now()
    let delayMs = intervalMs
    try {
      if (await run(stopping.signal)) delayMs = 0
    } catch (error) {
      if (stopping.signal.aborted) return
      const fields = { event, err: error }
      if (isDatabaseAway(error)) logger.warn(fields, event)
      else logger.error(fields, event)
    } finally {
      beganAtMs = null
    }
    schedule(delayMs)
  }

  function schedule(delayMs: number): void {
    if (stopping.signal.aborted) return
    timer = setTimeout(() => {
      running = pass()
    }, delayMs)
  }

  return {
    start: () => schedule(0),
    async stop() {
      stopping.abort()
      clearTimeout(timer)
      await running
    },
    runningForMs: () => (beganAtMs === null ? null : performance.now() - beganAtMs),
  }
}

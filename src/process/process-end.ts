import { describeError } from './visible-text.ts'
import { settlesWithin } from '../timers.ts'

/**
 * Runs `stop` once, at the first SIGINT or SIGTERM, and then ends the process with exit code 0.
 * A second signal ends it at once, for those who cannot wait.
 * Returns what does the same for another reason, with exit code 1; the first signal after that changes nothing.
 */
export function onStopSignal(stop: (reason: string) => Promise<void>): (reason: string) => void {
  let stopping = false
  let hasSignal = false
  const end = (reason: string, exitCode: number): void => {
    if (stopping) return
    stopping = true
    stop(reason).then(
      () => process.exit(exitCode),
      (error: unknown) => {
        process.stderr.write(`${describeError(error)}\n`)
        process.exit(1)
      },
    )
  }
  const handle = (signal: NodeJS.Signals): void => {
    if (hasSignal) process.exit(1)
    hasSignal = true
    end(signal, 0)
  }
  process.on('SIGINT', handle)
  process.on('SIGTERM', handle)
  return (reason) => end(reason, 1)
}

/**
 * Logs and counts uncaught errors. After an exception the state of the interrupted code is unknown, so `end` stops the
 * process cleanly for a supervisor to restart. An unhandled rejection interrupts only the code that awaited it, so the
 * process continues.
 */
export function onUnexpectedError(dependencies: {
  // Not their own types: the package `posthorn-listen` has this file, and no logger.
  logger: { error: (line: { event: string; err: unknown }) => void }
  metrics: { unexpectedError: (kind: 'rejection' | 'exception') => void }
  end: (reason: string) => void
}): void {
  const { logger, metrics, end } = dependencies
  process.on('unhandledRejection', (reason) => {
    metrics.unexpectedError('rejection')
    logger.error({ event: 'process.unhandled_rejection', err: reason })
  })
  process.on('uncaughtException', (error) => {
    metrics.unexpectedError('exception')
    logger.error({ event: 'process.uncaught_exception', err: error })
    end('uncaught_exception')
  })
}

type Stop = () => Promise<unknown>

/** The time for each part that is stopped after the time limit is used up. */
const LAST_CHANCE_MS = 100

/** Things that were started and are to be stopped in the opposite order. */
export type Stack = {
  push(name: string, stop: Stop): void
  /** Several that are stopped at the same time. */
  pushTogether(parts: Readonly<Record<string, Stop>>): void
  /**
   * Stops all; one that fails does not keep the others from being stopped. With `limitMs`, what has not ended by then
   * is waited for no longer. Returns what went wrong.
   */
  stop(limitMs?: number): Promise<string[]>
}

export function createStack(): Stack {
  const entries: [name: string, stop: Stop][][] = []
  return {
    push(name, stop) {
      entries.push([[name, stop]])
    },
    pushTogether(parts) {
      entries.push(Object.entries(parts))
    },
    async stop(limitMs = Infinity) {
      const untilMs = performance.now() + limitMs
      const problems: string[] = []
      for (let entry = entries.pop(); entry !== undefined; entry = entries.pop()) {
        const leftMs = Math.max(LAST_CHANCE_MS, untilMs - performance.now())
        await Promise.all(
          entry.map(async ([name, stop]) => {
            const problem = await problemOf(stop, leftMs)
            if (problem !== null) problems.push(`${name}: ${problem}`)
          }),
        )
      }
      return problems
    },
  }
}

async function problemOf(stop: Stop, leftMs: number): Promise<string | null> {
  try {
    const stopped = stop()
    if (leftMs !== Infinity && !(await settlesWithin(stopped, leftMs))) return 'it took too long'
    await stopped
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

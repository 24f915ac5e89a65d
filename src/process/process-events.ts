import { describeError } from './visible-text.ts'

/**
 * Runs `stop` once, at the first SIGINT or SIGTERM, and then ends the process with exit code 0.
 * A second signal ends it at once, for those who cannot wait.
 * Returns what does the same for another reason, with exit code 1.
 */
export function onStopSignal(stop: (reason: string) => Promise<void>): (reason: string) => void {
  let stopping = false
  const end = (reason: string, exitCode: number): void => {
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
    if (stopping) process.exit(1)
    end(signal, 0)
  }
  process.on('SIGINT', handle)
  process.on('SIGTERM', handle)
  return (reason) => {
    if (!stopping) end(reason, 1)
  }
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

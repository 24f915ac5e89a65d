import type { Logger } from '../observability/logger.ts'
import type { Metrics } from '../observability/metrics.ts'

/**
 * Logs and counts uncaught errors. After an exception the state of the interrupted code is unknown, so `end` stops the
 * process cleanly for a supervisor to restart. An unhandled rejection interrupts only the code that awaited it, so the
 * process continues.
 */
export function onUnexpectedError(dependencies: {
  logger: Logger
  metrics: Metrics
  end: (reason: string) => void
}): void {
  const { logger, metrics, end } = dependencies
  process.on('unhandledRejection', (reason) => {
    metrics.unexpectedError('rejection')
    logger.error({ event: 'process.unhandled_rejection', err: reason }, 'process.unhandled_rejection')
  })
  process.on('uncaughtException', (error) => {
    metrics.unexpectedError('exception')
    logger.error({ event: 'process.uncaught_exception', err: error }, 'process.uncaught_exception')
    end('uncaught_exception')
  })
}

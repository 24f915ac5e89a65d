import type { Logger } from '../logger.ts'
import type { Metrics } from '../metrics.ts'

/**
 * The last resort for errors that nobody caught. All are logged and counted.
 * After an exception nothing is known of the code that it went through: `end` is called, to end the process in good
 * order and have a supervisor start it again. A promise whose rejection nobody handles breaks off only what awaited it:
 * the process goes on, since ending it would break off everything else as well.
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

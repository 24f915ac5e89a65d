import { DefaultLogger, Runtime, type LogEntry } from '@temporalio/worker'
import type { Logger } from '../logger.ts'

/** Sends what the engine's native core has to say to our log. To be called once, before any connection. */
export function installRuntime(logger: Logger): void {
  const write = (entry: LogEntry): void => {
    const fields = { event: 'engine.log', ...entry.meta }
    if (entry.level === 'ERROR') logger.error(fields, entry.message)
    else logger.warn(fields, entry.message)
  }
  Runtime.install({
    logger: new DefaultLogger('WARN', write),
    // We end the process ourselves, in order.
    shutdownSignals: [],
    telemetryOptions: { logging: { forward: {}, filter: 'WARN' } },
  })
}

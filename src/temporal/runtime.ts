import { DefaultLogger, Runtime, type LogEntry, type RuntimeOptions } from '@temporalio/worker'
import { freePort } from '../free-port.ts'
import type { Logger } from '../observability/logger.ts'

const LOOPBACK = '127.0.0.1'

/** A free port may be taken before it is used. */
const MAX_TRIES = 5

/**
 * Forwards the log of Temporal's native core to our logger. Call it once, before any connection.
 * With `withMetrics` the core serves its metrics on a loopback port of its own; returns their URL, otherwise null.
 */
export async function installRuntime(
  logger: Logger,
  { withMetrics }: { withMetrics: boolean },
): Promise<string | null> {
  for (let tries = 1; withMetrics && tries <= MAX_TRIES; tries++) {
    const bindAddress = `${LOOPBACK}:${await freePort()}`
    try {
      install(logger, metricsAt(bindAddress))
      return `http://${bindAddress}/metrics`
    } catch (error) {
      logger.warn({ event: 'temporal.metrics_failed', err: error })
    }
  }
  install(logger, {})
  return null
}

type Telemetry = NonNullable<RuntimeOptions['telemetryOptions']>

function install(logger: Logger, telemetry: Pick<Telemetry, 'metrics'>): void {
  const write = (entry: LogEntry): void => {
    const fields = { event: 'temporal.core_logged', ...entry.meta }
    if (entry.level === 'ERROR') logger.error(fields, entry.message)
    else logger.warn(fields, entry.message)
  }
  Runtime.install({
    logger: new DefaultLogger('WARN', write),
    // Posthorn shuts the workers down itself.
    shutdownSignals: [],
    telemetryOptions: { logging: { forward: {}, filter: 'WARN' }, ...telemetry },
  })
}

/** Names as Prometheus recommends: with units, in seconds, and `_total` for counters. */
function metricsAt(bindAddress: string): Pick<Telemetry, 'metrics'> {
  const prometheus = {
    bindAddress,
    countersTotalSuffix: true,
    unitSuffix: true,
    useSecondsForDurations: true,
  }
  return { metrics: { prometheus, attachServiceName: false } }
}

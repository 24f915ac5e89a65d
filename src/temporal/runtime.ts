import { DefaultLogger, Runtime, type LogEntry, type RuntimeOptions } from '@temporalio/worker'
import { freePort } from '../free-port.ts'
import type { Logger } from '../logger.ts'

const LOOPBACK = '127.0.0.1'

/** The port that was free a moment ago may be taken by now. */
const TRIES = 5

/**
 * Sends what the engine's native core has to say to our log. To be called once, before any connection.
 * `withMetrics` has the core count what it does. It can serve that on a listener of its own only, which is opened on a
 * free port of this machine's loopback; returns its address, null without one.
 */
export async function installRuntime(
  logger: Logger,
  { withMetrics }: { withMetrics: boolean },
): Promise<string | null> {
  for (let tries = 1; withMetrics && tries <= TRIES; tries++) {
    const bindAddress = `${LOOPBACK}:${await freePort()}`
    try {
      install(logger, metricsAt(bindAddress))
      return `http://${bindAddress}/metrics`
    } catch (error) {
      logger.warn({ event: 'engine.no_metrics', err: error }, 'engine.no_metrics')
    }
  }
  install(logger, {})
  return null
}

type Telemetry = NonNullable<RuntimeOptions['telemetryOptions']>

function install(logger: Logger, telemetry: Pick<Telemetry, 'metrics'>): void {
  const write = (entry: LogEntry): void => {
    const fields = { event: 'engine.log', ...entry.meta }
    if (entry.level === 'ERROR') logger.error(fields, entry.message)
    else logger.warn(fields, entry.message)
  }
  Runtime.install({
    logger: new DefaultLogger('WARN', write),
    // We end the process ourselves, in order.
    shutdownSignals: [],
    telemetryOptions: { logging: { forward: {}, filter: 'WARN' }, ...telemetry },
  })
}

/** Named as Prometheus would have it: units in the names, seconds, and `_total` for what only grows. */
function metricsAt(bindAddress: string): Pick<Telemetry, 'metrics'> {
  const prometheus = {
    bindAddress,
    countersTotalSuffix: true,
    unitSuffix: true,
    useSecondsForDurations: true,
  }
  return { metrics: { prometheus, attachServiceName: false } }
}

import { Registry } from 'prom-client'
import type { Config } from '../config/load.ts'
import { closeDataSource, poolStatus } from '../db/connection/data-source.ts'
import { countBacklogInTime } from '../db/queries/backlog.ts'
import { isDatabaseUp } from '../db/queries/server-state.ts'
import type { Dispatcher } from '../deliveries/dispatch/dispatcher.ts'
import type { Logger } from '../observability/logger.ts'
import { createMetrics } from '../observability/metrics.ts'
import { serveMetrics } from './metrics/metrics-app.ts'
import { createBacklogReader } from './metrics/backlog-reader.ts'
import { createScrape } from './metrics/scrape.ts'
import type { TemporalService } from '../temporal/temporal-service.ts'
import { connect } from './open-database.ts'
import { readReadiness, type ReadinessParts } from '../http/readiness.ts'
import type { Stack } from './process-end.ts'
import { DefaultLogger, Runtime, type LogEntry, type RuntimeOptions } from '@temporalio/worker'
import { freePort } from '../free-port.ts'

type MeteredParts = ReadinessParts & { temporal: TemporalService; dispatcher: Pick<Dispatcher, 'load'> }

/** Creates the metrics, and installs those of Temporal's native core. Call it once, before any connection. */
export async function createMetering(
  config: Pick<Config, 'databaseUrl' | 'databasePooler' | 'metricsHost' | 'metricsPort'>,
  logger: Logger,
) {
  const coreMetricsUrl = await installRuntime(logger, { withMetrics: config.metricsPort !== null })
  const registry = new Registry()
  return {
    metrics: createMetrics(registry),
    /**
     * Starts to serve the metrics and the probes; returns the address of the metrics, or null without a port. Stops
     * after the parts that it measures. Throws when the port is taken.
     */
    async serve(parts: MeteredParts, running: Stack): Promise<string | null> {
      if (config.metricsPort === null) return null
      const { dataSource, temporal, dispatcher } = parts
      const role = parts.sweep === null ? 'api' : 'worker'
      const { databaseUrl: url, databasePooler: pooler } = config
      // Outside the pool, which may be exhausted: one to count the backlog, and one that shows whether the database is up.
      const counting = await connect({ url, poolSize: 2, pooler, logger })
      running.push('the connection of the metrics', () => closeDataSource(counting))
      const scrape = createScrape(registry, {
        readBacklog: createBacklogReader({ read: () => countBacklogInTime(counting), logger }),
        isDatabaseUp: () => isDatabaseUp(counting),
        pool: () => poolStatus(dataSource),
        dispatcher: () => dispatcher.load(),
        temporal,
        coreMetricsUrl,
      })
      const sources = { scrape, readiness: () => readReadiness(parts, role), logger }
      return serveMetrics(sources, registry, { config, running })
    },
  }
}

const LOOPBACK = '127.0.0.1'

/** A free port may be taken before it is used. */
const MAX_TRIES = 5

/**
 * Forwards the log of Temporal's native core to our logger. Call it once, before any connection.
 * With `withMetrics` the core serves its metrics on a loopback port of its own; returns their URL, otherwise null.
 */
async function installRuntime(
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

import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { DataSource } from 'typeorm'
import packageJson from '../../package.json' with { type: 'json' }
import type { Config } from '../config/load.ts'
import { closeDataSource, poolStatus } from '../db/connection/data-source.ts'
import { countBacklogInTime } from '../db/queries/backlog.ts'
import type { Dispatcher } from '../deliveries/dispatch/dispatcher.ts'
import type { Logger } from '../observability/logger.ts'
import { createMetrics, type Metrics } from '../observability/metrics.ts'
import { createMetricsApp } from './metrics/metrics-app.ts'
import { createBacklogReader } from './metrics/backlog-reader.ts'
import { createScrape } from './metrics/scrape.ts'
import type { TemporalService } from '../temporal/temporal-service.ts'
import { installRuntime } from '../temporal/runtime.ts'
import { connect } from './open-database.ts'
import { listenInWords } from '../http/listen.ts'
import { readReadiness, type ReadinessParts } from '../http/readiness.ts'
import type { Stack } from './shutdown-stack.ts'

export type Metering = {
  metrics: Metrics
  /**
   * Starts to serve the metrics and the probes; returns the address of the metrics, or null without a port. Stops
   * after the parts that it measures. Throws when the port is taken.
   */
  serve(parts: MeteredParts, running: Stack): Promise<string | null>
}

type MeteredParts = ReadinessParts & { temporal: TemporalService; dispatcher: Pick<Dispatcher, 'load'> }

export const METRICS_LISTENER = {
  what: 'metrics',
  hostVariable: 'METRICS_HOST',
  portVariable: 'METRICS_PORT',
}

/** Creates the metrics, and installs those of Temporal's native core. Call it once, before any connection. */
export async function createMetering(
  config: Pick<Config, 'databaseUrl' | 'databasePooler' | 'metricsHost' | 'metricsPort'>,
  logger: Logger,
): Promise<Metering> {
  const { metricsHost: host, metricsPort: port } = config
  const coreMetricsUrl = await installRuntime(logger, { withMetrics: port !== null })
  const registry = new Registry()
  return {
    metrics: createMetrics(registry),
    async serve(parts, running) {
      if (port === null) return null
      const { dataSource, temporal, dispatcher } = parts
      const role = parts.sweep === null ? 'api' : 'worker'
      collectDefaultMetrics({ register: registry })
      showVersion(registry)
      const counting = await openCountingConnection(config, logger)
      running.push('the connection of the metrics', () => closeDataSource(counting))
      const scrape = createScrape(registry, {
        backlog: createBacklogReader({ read: () => countBacklogInTime(counting), logger }),
        pool: () => poolStatus(dataSource),
        dispatcher: () => dispatcher.load(),
        temporal,
        coreMetricsUrl,
      })
      const readiness = () => readReadiness(parts, role)
      const listening = await listenInWords(
        METRICS_LISTENER,
        createMetricsApp({ scrape, readiness, logger }),
        { host, port },
      )
      running.push('the metrics', () => listening.close())
      return `${listening.url}/metrics`
    },
  }
}

/** Opens a connection outside the pool, so that the backlog can be counted while the pool is exhausted. */
async function openCountingConnection(
  { databaseUrl: url, databasePooler: pooler }: Pick<Config, 'databaseUrl' | 'databasePooler'>,
  logger: Logger,
): Promise<DataSource> {
  return connect({ url, poolSize: 1, pooler, logger })
}

/** Adds the metric of the version that runs. */
export function showVersion(registry: Registry): void {
  const info = new Gauge({
    name: 'posthorn_build_info',
    help: '1, with the version that runs',
    labelNames: ['version'],
    registers: [registry],
  })
  info.set({ version: packageJson.version }, 1)
}

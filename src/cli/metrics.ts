import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { DataSource } from 'typeorm'
import packageJson from '../../package.json' with { type: 'json' }
import type { Config } from '../config.ts'
import { closeDataSource, createDataSource } from '../db/data-source.ts'
import { poolStatus } from '../db/pool-status.ts'
import { countBacklogInTime } from '../db/queries/backlog.ts'
import type { Dispatcher } from '../deliveries/dispatch/dispatcher.ts'
import { listen } from '../http/listen.ts'
import type { Logger } from '../logger.ts'
import { createMetrics, type Metrics } from '../metrics.ts'
import { createMetricsApp } from '../metrics/app.ts'
import { createBacklogReader } from '../metrics/backlog-reader.ts'
import { createScrape } from '../metrics/scrape.ts'
import type { Engine } from '../temporal/engine.ts'
import { installRuntime } from '../temporal/runtime.ts'
import type { Stack } from './stack.ts'

export type Metering = {
  metrics: Metrics
  /**
   * Begins to serve what was counted and how things stand; returns the address, null where no port is set. Stops after
   * all that it tells of. Throws when the port is not to be had.
   */
  serve(parts: MeteredParts, running: Stack): Promise<string | null>
}

type MeteredParts = { dataSource: DataSource; engine: Engine; dispatcher: Dispatcher }

/** The database gives up counting after that; the scrape has gone without the figures long before. */
const COUNT_TIMEOUT_MS = 2_000

/** Sets up the engine's native core too, which counts for itself. To be called once, before any connection. */
export async function createMetering(
  config: Pick<Config, 'databaseUrl' | 'databasePooler' | 'metricsHost' | 'metricsPort'>,
  logger: Logger,
): Promise<Metering> {
  const { metricsHost: host, metricsPort: port } = config
  const engineMetricsUrl = await installRuntime(logger, { withMetrics: port !== null })
  const registry = new Registry()
  return {
    metrics: createMetrics(registry),
    async serve({ dataSource, engine, dispatcher }, running) {
      if (port === null) return null
      collectDefaultMetrics({ register: registry })
      showVersion(registry)
      const counting = await openCountingConnection(config, logger)
      running.push('the connection of the metrics', () => closeDataSource(counting))
      const scrape = createScrape(registry, {
        backlog: createBacklogReader({ read: () => countBacklogInTime(counting, COUNT_TIMEOUT_MS), logger }),
        pool: () => poolStatus(dataSource),
        dispatcher: () => dispatcher.load(),
        engine,
        engineMetricsUrl,
      })
      const listening = await listen(createMetricsApp(scrape, logger), { host, port })
      running.push('the metrics', () => listening.close())
      return `${listening.url}/metrics`
    },
  }
}

/** One connection besides the pool: when that is exhausted, the backlog is wanted most. */
async function openCountingConnection(
  { databaseUrl: url, databasePooler: pooler }: Pick<Config, 'databaseUrl' | 'databasePooler'>,
  logger: Logger,
): Promise<DataSource> {
  const onIdleError = (error: Error): void =>
    logger.warn({ event: 'database.connection_lost', err: error }, 'database.connection_lost')
  return createDataSource({ url, poolSize: 1, pooler, onIdleError }).initialize()
}

function showVersion(registry: Registry): void {
  const info = new Gauge({
    name: 'posthorn_build_info',
    help: '1, with the version that runs',
    labelNames: ['version'],
    registers: [registry],
  })
  info.set({ version: packageJson.version }, 1)
}

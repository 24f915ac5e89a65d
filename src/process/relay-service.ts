import { Registry } from 'prom-client'
import type { Config } from '../config/load.ts'
import { closeDataSource } from '../db/connection/data-source.ts'
import { createDefine } from '../observability/metrics/define.ts'
import { createRelayGauges, createRelayMetrics } from '../observability/metrics/relay.ts'
import { createProcessMetrics } from '../observability/metrics/requests.ts'
import { findOutbox, readFigures } from '../relay/outbox.ts'
import { createPublishRow } from '../relay/publish-row.ts'
import { createRelay, type Relay } from '../relay/relay.ts'
import { connect } from './open-database.ts'
import { createBacklogReader } from './metrics/backlog-reader.ts'
import { serveMetrics } from './metrics/metrics-app.ts'
import { onUnexpectedError } from './process-end.ts'
import type { ProcessHost } from './service.ts'

export const NEEDED_SETTINGS = [
  'relayDatabaseUrl',
  'relayOperatorKey',
  'relayKeepHours',
  'logLevel',
  'metricsHost',
  'metricsPort',
  'shutdownGraceMs',
] as const

type RelayConfig = Pick<Config, (typeof NEEDED_SETTINGS)[number]>

/** Turns take one for a moment each, and a scrape one. The session has its own. */
const POOL_SIZE = 4

/**
 * Builds the process of `posthorn relay` and starts it, as `startService` does. Throws when the platform's database or its
 * outbox is not there, or the port of the metrics is taken. `apiUrl` has no slash at its end.
 */
export async function startRelay(config: RelayConfig, apiUrl: string, host: ProcessHost): Promise<void> {
  const { logger, running, shutdown, end } = host
  const registry = new Registry()
  const define = createDefine(registry)
  onUnexpectedError({ logger, metrics: createProcessMetrics(define), end })
  const databaseUrl = config.relayDatabaseUrl
  const dataSource = await connect(
    { url: databaseUrl, poolSize: POOL_SIZE, applicationName: 'posthorn relay', logger },
    'RELAY_DATABASE_URL',
  )
  running.push('the database', () => closeDataSource(dataSource))
  const outbox = await findOutbox(dataSource)
  if (outbox === null)
    throw new Error(
      'RELAY_DATABASE_URL has no table posthorn_outbox: `posthorn relay --print-sql` prints the SQL that makes it.',
    )
  const relay = createRelay({
    dataSource,
    databaseUrl,
    publishRow: createPublishRow({ apiUrl, operatorKey: config.relayOperatorKey }),
    keepHours: config.relayKeepHours,
    logger,
    metrics: createRelayMetrics(define),
    shutdown,
  })
  const show = createRelayGauges(define)
  const figures = createBacklogReader({ read: () => readFigures(dataSource), logger })
  const scrape = async (): Promise<string> => {
    show(await figures(), relay.state())
    return registry.metrics()
  }
  const readiness = () => Promise.resolve(readinessOf(relay, shutdown.stopping))
  const metricsUrl = await serveMetrics({ scrape, readiness, logger }, registry, { config, running })
  running.push('the relay', () => relay.stop())
  relay.start()
  logger.info({ event: 'relay.started', apiUrl, metricsUrl })
}

function readinessOf(relay: Relay, stopping: AbortSignal): { isReady: boolean; body: object } {
  const state = relay.state()
  return {
    isReady: state.database === 'up' && state.api === 'up' && !stopping.aborted,
    body: { ...state, ...(stopping.aborted && { process: 'stopping' }) },
  }
}

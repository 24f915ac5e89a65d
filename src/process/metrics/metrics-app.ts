import Koa, { type Context } from 'koa'
import { collectDefaultMetrics, Gauge, prometheusContentType, type Registry } from 'prom-client'
import type { Config } from '../../config/load.ts'
import { listenInWords } from '../../http/listen.ts'
import type { Logger } from '../../observability/logger.ts'
import type { Stack } from '../process-end.ts'

import packageJson from '../../../package.json' with { type: 'json' }

type MetricsAppOptions = {
  /** Returns all metrics in Prometheus' text format. */
  scrape: () => Promise<string>
  /** Returns the body of `/readyz`, which is answered 503 unless `isReady`. Never rejects. */
  readiness: () => Promise<{ isReady: boolean; body: object }>
  logger: Logger
}

const LISTENER = { what: 'metrics', hostVariable: 'METRICS_HOST', portVariable: 'METRICS_PORT' }

/**
 * Serves the metrics and the probes of a process; adds the metrics of Node.js and of the version that runs. Returns the
 * address of the metrics, or null without a port. Throws when the port is taken.
 */
export async function serveMetrics(
  options: MetricsAppOptions,
  registry: Registry,
  { config, running }: { config: Pick<Config, 'metricsHost' | 'metricsPort'>; running: Stack },
): Promise<string | null> {
  const { metricsHost: host, metricsPort: port } = config
  if (port === null) return null
  collectDefaultMetrics({ register: registry })
  const info = new Gauge({
    name: 'posthorn_build_info',
    help: '1, with the version that runs',
    labelNames: ['version'],
    registers: [registry],
  })
  info.set({ version: packageJson.version }, 1)
  const listening = await listenInWords(LISTENER, createMetricsApp(options), { host, port })
  running.push('the metrics', () => listening.close())
  return `${listening.url}/metrics`
}

/** Builds the app of the metrics port: `GET /metrics`, `/healthz` and `/readyz`, and nothing else. */
export function createMetricsApp({ scrape, readiness, logger }: MetricsAppOptions): Koa {
  const app = new Koa()
  app.silent = true
  const handlers = new Map<string | undefined, (ctx: Context) => Promise<void> | void>([
    ['/metrics', answerMetrics],
    ['/healthz', (ctx) => void (ctx.body = { status: 'ok' })],
    ['/readyz', answerReadiness],
  ])

  async function answerMetrics(ctx: Context): Promise<void> {
    try {
      ctx.body = await scrape()
      ctx.set('content-type', prometheusContentType)
    } catch (error) {
      logger.error({ event: 'metrics.scrape_failed', err: error })
      ctx.status = 500
    }
  }

  async function answerReadiness(ctx: Context): Promise<void> {
    const { isReady, body } = await readiness()
    ctx.status = isReady ? 200 : 503
    ctx.body = body
  }

  app.use(async (ctx) => {
    // The target as it was sent: one that is no URL has no path to be read, and is not ours.
    const handle = handlers.get(ctx.url.split('?', 1)[0])
    if (handle === undefined) return
    if (ctx.method !== 'GET') {
      ctx.status = 405
      ctx.set('allow', 'GET')
      return
    }
    ctx.set('cache-control', 'no-store')
    await handle(ctx)
  })
  return app
}

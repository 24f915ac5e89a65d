import Koa, { type Context } from 'koa'
import { prometheusContentType } from 'prom-client'
import type { Logger } from '../../observability/logger.ts'

type MetricsAppOptions = {
  /** Returns all metrics in Prometheus' text format. */
  scrape: () => Promise<string>
  /** Returns the body of `/readyz`, which is answered 503 unless `isReady`. Never rejects. */
  readiness: () => Promise<{ isReady: boolean; body: object }>
  logger: Logger
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
      logger.error({ event: 'metrics.scrape_failed', err: error }, 'metrics.scrape_failed')
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

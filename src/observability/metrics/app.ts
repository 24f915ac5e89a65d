import Koa from 'koa'
import { prometheusContentType } from 'prom-client'
import type { Logger } from '../logger.ts'

const PATH = '/metrics'

/** `GET /metrics` and nothing else. */
export function createMetricsApp(scrape: () => Promise<string>, logger: Logger): Koa {
  const app = new Koa()
  app.silent = true
  app.use(async (ctx) => {
    // The target as it was sent: one that is no URL has no path to be read, and is not ours.
    if (ctx.url.split('?', 1)[0] !== PATH) return
    if (ctx.method !== 'GET') {
      ctx.status = 405
      ctx.set('allow', 'GET')
      return
    }
    try {
      ctx.body = await scrape()
      ctx.set({ 'content-type': prometheusContentType, 'cache-control': 'no-store' })
    } catch (error) {
      logger.error({ event: 'metrics.scrape_failed', err: error }, 'metrics.scrape_failed')
      ctx.status = 500
    }
  })
  return app
}

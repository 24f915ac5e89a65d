import Koa, { type Middleware } from 'koa'
import { webPages } from './pages/web-pages.ts'
import type { ApiDependencies } from './api.ts'
import { compression, errorHandler, requestLog } from './answer.ts'
import { requestTarget } from './middleware/requested-host.ts'
import { createTrustedProxies, forwarded } from './middleware/trusted-proxies.ts'
import { createRouter } from './router.ts'
import { routes } from './routes/index.ts'

/** Creates the API: all middleware, in the order in which a request passes it. `pages`: added in development. */
export function createApp(dependencies: ApiDependencies, pages: readonly Middleware[] = []): Koa {
  const { logger, metrics, publicUrl, trustedProxies } = dependencies
  // Koa trusts the forwarding headers; `forwarded` removes those that do not come from a trusted proxy.
  const app = new Koa({ proxy: true })
  app.silent = true
  app.use(forwarded(createTrustedProxies(trustedProxies), logger))
  app.use(compression())
  app.use(requestLog(logger, metrics))
  app.use(securityHeaders(publicUrl))
  app.use(errorHandler(logger))
  app.use(requestTarget())
  const routing = createRouter(dependencies, routes, [...pages, webPages(dependencies)])
  for (const middleware of routing) app.use(middleware)
  return app
}

/** A year, as browsers ask of hosts that they preload; only for this host, since its neighbours are not known here. */
const TRANSPORT_SECURITY = { 'strict-transport-security': 'max-age=31536000' }

/**
 * Keeps browsers from rendering, framing or storing answers, and on https where the service has such a URL. There are no
 * CORS headers, on purpose.
 */
export function securityHeaders(publicUrl: string): Middleware {
  const overTls = publicUrl.startsWith('https://') ? TRANSPORT_SECURITY : {}
  return async (ctx, next) => {
    ctx.set({
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
      ...overTls,
    })
    await next()
  }
}

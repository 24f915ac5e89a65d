import Koa, { type Middleware } from 'koa'
import { readWebFiles } from './pages/web-files.ts'
import { webPages } from './pages/web-pages.ts'
import type { ApiDependencies } from './api.ts'
import { compression } from './middleware/compression.ts'
import { errorHandler } from './middleware/error-handler.ts'
import { requestLog, requestMetrics } from './middleware/request-log.ts'
import { requireOneHost, requireOwnHost, requestTarget } from './middleware/requested-host.ts'
import { securityHeaders } from './middleware/security-headers.ts'
import { createTrustedProxies, forwarded } from './middleware/trusted-proxies.ts'
import { createRouter } from './router.ts'
import { routes } from './routes/index.ts'

/** Creates the API: all middleware, in the order in which a request passes it. `pages`: added in development. */
export function createApp(dependencies: ApiDependencies, pages: readonly Middleware[] = []): Koa {
  const { brand, frameAncestors, publicUrl, trustedProxies } = dependencies
  // Koa trusts the forwarding headers; `forwarded` removes those that do not come from a trusted proxy.
  const app = new Koa({ proxy: true })
  app.silent = true
  app.use(forwarded(createTrustedProxies(trustedProxies), dependencies.logger))
  app.use(compression())
  app.use(requestMetrics(dependencies.metrics))
  app.use(requestLog(dependencies.logger))
  app.use(securityHeaders(publicUrl))
  app.use(errorHandler(dependencies.logger))
  app.use(requestTarget())
  app.use(requireOneHost())
  const web = webPages(readWebFiles(brand), frameAncestors, (ctx) => requireOwnHost(ctx, publicUrl))
  const routing = createRouter(dependencies, routes, [...pages, web])
  for (const middleware of routing) app.use(middleware)
  return app
}

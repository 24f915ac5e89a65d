import Koa, { type Middleware } from 'koa'
import type { ApiDependencies } from './api.ts'
import { errorDoor } from './middleware/error-door.ts'
import { forwarded } from './middleware/forwarded.ts'
import { requestLog } from './middleware/request-log.ts'
import { requestMetrics } from './middleware/request-metrics.ts'
import { requestTarget } from './middleware/request-target.ts'
import { securityHeaders } from './middleware/security-headers.ts'
import { readWebFiles } from '../web/web-files.ts'
import { webPages } from '../web/web-pages.ts'
import { createRouter } from './router.ts'
import { routes } from './routes/index.ts'
import { createTrustedProxies } from './trusted-proxies.ts'

/** The API. Everything a request passes stands here, in order. `pages`: what development adds to it. */
export function createApp(dependencies: ApiDependencies, pages: readonly Middleware[] = []): Koa {
  const { trustedProxies } = dependencies
  // Koa then believes the forwarding headers, of which `forwarded` leaves those of trusted proxies only.
  const app = new Koa({ proxy: true })
  app.silent = true
  app.use(forwarded(createTrustedProxies(trustedProxies)))
  app.use(requestMetrics(dependencies.metrics))
  app.use(requestLog(dependencies.logger))
  app.use(securityHeaders())
  app.use(errorDoor(dependencies.logger))
  app.use(requestTarget())
  const answering = createRouter(dependencies, routes, [...pages, webPages(readWebFiles())])
  for (const middleware of answering) app.use(middleware)
  return app
}

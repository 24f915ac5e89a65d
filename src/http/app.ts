import Koa, { type Middleware } from 'koa'
import type { ApiDependencies } from './api.ts'
import { errorDoor } from './middleware/error-door.ts'
import { requestLog } from './middleware/request-log.ts'
import { requestMetrics } from './middleware/request-metrics.ts'
import { requestTarget } from './middleware/request-target.ts'
import { securityHeaders } from './middleware/security-headers.ts'
import { readWebFiles } from '../web/web-files.ts'
import { webPages } from '../web/web-pages.ts'
import { createRouter } from './router.ts'
import { routes } from './routes/index.ts'

/** The API. Everything a request passes stands here, in order. `pages`: what development adds to it. */
export function createApp(dependencies: ApiDependencies, pages: readonly Middleware[] = []): Koa {
  const { trustedProxyHops } = dependencies
  // Without a proxy of ours in front, X-Forwarded-For is whatever the sender likes.
  const app = new Koa({ proxy: trustedProxyHops > 0, maxIpsCount: trustedProxyHops })
  app.silent = true
  app.use(requestMetrics(dependencies.metrics))
  app.use(requestLog(dependencies.logger))
  app.use(securityHeaders())
  app.use(errorDoor(dependencies.logger))
  app.use(requestTarget())
  const answering = createRouter(dependencies, routes, [...pages, webPages(readWebFiles())])
  for (const middleware of answering) app.use(middleware)
  return app
}

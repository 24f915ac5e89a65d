import { randomUUID } from 'node:crypto'
import type { Middleware } from 'koa'
import type { Logger } from '../../logger.ts'
import { pathOf } from './request-target.ts'

const USABLE_ID = /^[A-Za-z0-9-]{1,64}$/

/** One line per request, with an id that is also in the answer; never a body, a header or a query string. */
export function requestLog(logger: Logger): Middleware {
  return async (ctx, next) => {
    const given = ctx.get('x-request-id')
    const requestId = USABLE_ID.test(given) ? given : randomUUID()
    ctx.set('x-request-id', requestId)
    const startedAt = performance.now()
    await next()
    const durationMs = Math.round(performance.now() - startedAt)
    const { method, status } = ctx
    const path = pathOf(ctx)
    logger.info({ event: 'http.answered', requestId, method, path, status, durationMs }, 'http.answered')
  }
}

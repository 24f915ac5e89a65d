import { randomUUID } from 'node:crypto'
import type { Middleware } from 'koa'
import type { Logger } from '../../observability/logger.ts'
import type { RequestState } from './request-metrics.ts'
import { pathOf } from './request-target.ts'

const USABLE_ID = /^[A-Za-z0-9-]{1,64}$/

/** Logs one line per request, with an id that is also in the answer; never a body, a header or a query string. */
export function requestLog(logger: Logger): Middleware<RequestState> {
  return async (ctx, next) => {
    const given = ctx.get('x-request-id')
    const requestId = USABLE_ID.test(given) ? given : randomUUID()
    ctx.set('x-request-id', requestId)
    const startedAt = performance.now()
    await next()
    const durationMs = Math.round(performance.now() - startedAt)
    const { method, status } = ctx
    const { operator, trace } = ctx.state
    const fields = {
      event: 'http.answered',
      requestId,
      method,
      path: pathOf(ctx),
      status,
      durationMs,
      // The logger leaves out what is undefined.
      operator,
      traceId: trace?.traceId,
      spanId: trace?.spanId ?? undefined,
    }
    logger.info(fields, fields.event)
  }
}

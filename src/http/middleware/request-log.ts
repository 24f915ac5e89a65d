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
    const by = operator === undefined ? {} : { operator }
    const path = pathOf(ctx)
    const fields = { event: 'http.answered', requestId, method, path, status, durationMs }
    logger.info({ ...fields, ...by, ...traceFields(trace) }, 'http.answered')
  }
}

/** The trace of a publishing request. */
function traceFields(trace: RequestState['trace']): object {
  if (trace === undefined) return {}
  const { traceId, spanId } = trace
  return spanId === null ? { traceId } : { traceId, spanId }
}

import { randomUUID } from 'node:crypto'
import type { Middleware } from 'koa'
import type { Logger } from '../../observability/logger.ts'
import { pathOf } from './requested-host.ts'
import type { Metrics } from '../../observability/metrics.ts'
import type { LoggedTrace } from '../route.ts'

const USABLE_ID = /^[A-Za-z0-9-]{1,64}$/

/** Any other method is the sender's choice, and would create a series of its own. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/**
 * Logs one line per request, with an id that is also in the answer; never a body, a header or a query string. Counts and
 * times it by its route, never by its path, which contains ids.
 */
export function requestLog(logger: Logger, metrics: Metrics): Middleware<RequestState> {
  return async (ctx, next) => {
    const given = ctx.get('x-request-id')
    const requestId = USABLE_ID.test(given) ? given : randomUUID()
    ctx.set('x-request-id', requestId)
    const startedAt = performance.now()
    await next()
    const durationMs = performance.now() - startedAt
    const { method, status } = ctx
    const { operationId: route = 'none', operator, trace } = ctx.state
    metrics.requestAnswered({ route, method: METHODS.has(method) ? method : 'other', status, durationMs })
    const fields = {
      event: 'http.answered',
      requestId,
      method,
      path: pathOf(ctx),
      status,
      durationMs: Math.round(durationMs),
      // The logger leaves out what is undefined.
      operator,
      traceId: trace?.traceId,
      spanId: trace?.spanId ?? undefined,
    }
    logger.info(fields, fields.event)
  }
}

/** `operationId`: of the matched route. `operator`: the name of the operator key that the request came with. */
export type RequestState = { operationId?: string; operator?: string; trace?: LoggedTrace }

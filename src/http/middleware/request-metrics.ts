import type { Middleware } from 'koa'
import type { Metrics } from '../../observability/metrics.ts'
import type { LoggedTrace } from '../route.ts'

/** `operationId`: of the matched route. `operator`: the name of the operator key that the request came with. */
export type RequestState = { operationId?: string; operator?: string; trace?: LoggedTrace }

/** Any other method is the sender's choice, and would create a series of its own. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** Counts and times each request by its route, never by its path, which contains ids. */
export function requestMetrics(metrics: Metrics): Middleware<RequestState> {
  return async (ctx, next) => {
    const startedAt = performance.now()
    await next()
    const { status, method: sent, state } = ctx
    const route = state.operationId ?? 'none'
    const method = METHODS.has(sent) ? sent : 'other'
    metrics.requestAnswered({ route, method, status, durationMs: performance.now() - startedAt })
  }
}

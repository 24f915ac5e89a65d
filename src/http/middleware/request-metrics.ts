import type { Middleware } from 'koa'
import type { Metrics } from '../../metrics.ts'

/** `operationId`: the route that took the request. */
export type RequestState = { operationId?: string }

/** Any other method is a word of the sender's own choice, and would make a series of its own. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** Counts and times each request under its route's name, never under its path: that has ids in it. */
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

import type { Middleware } from 'koa'
import { isDatabaseUnavailable } from '../../db/connection/connection-errors.ts'
import { ProblemError, unavailable } from '../../errors.ts'
import type { Logger } from '../../observability/logger.ts'

/** Converts every error into a problem+json answer with a stable code, without internals. The only place that does. */
export function errorHandler(logger: Logger): Middleware {
  return async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      const refusal = toProblem(error, logger)
      ctx.status = refusal.problem.status
      ctx.set(refusal.headers)
      ctx.body = refusal.document()
      ctx.type = 'application/problem+json'
    }
  }
}

function toProblem(error: unknown, logger: Logger): ProblemError {
  if (error instanceof ProblemError) return error
  if (isDatabaseUnavailable(error)) {
    logger.warn({ event: 'http.database_unavailable', err: error }, 'http.database_unavailable')
    return unavailable()
  }
  logger.error({ event: 'http.failed', err: error }, 'http.failed')
  return new ProblemError('internal_error', {
    detail: 'This is our fault. Try again; the log has the details.',
  })
}

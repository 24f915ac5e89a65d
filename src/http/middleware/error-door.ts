import type { Middleware } from 'koa'
import { isDatabaseAway } from '../../db/connection-errors.ts'
import { ProblemError, unavailable } from '../../errors.ts'
import type { Logger } from '../../logger.ts'

/** The only place where an error becomes an answer: problem+json with a stable code, and nothing of our insides. */
export function errorDoor(logger: Logger): Middleware {
  return async (ctx, next) => {
    try {
      await next()
    } catch (error) {
      const { problem } = toProblem(error, logger)
      const { status, code, title, headers, ...rest } = problem
      ctx.status = status
      ctx.set(headers ?? {})
      ctx.body = JSON.stringify({ type: `urn:posthorn:problem:${code}`, title, status, code, ...rest })
      ctx.type = 'application/problem+json'
    }
  }
}

function toProblem(error: unknown, logger: Logger): ProblemError {
  if (error instanceof ProblemError) return error
  if (isDatabaseAway(error)) {
    logger.warn({ event: 'http.database_away', err: error }, 'http.database_away')
    return unavailable()
  }
  logger.error({ event: 'http.fault', err: error }, 'http.fault')
  return new ProblemError('internal_error', {
    detail: 'This is our fault. Try again; the log has the details.',
  })
}

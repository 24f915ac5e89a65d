import type { Context } from 'koa'
import type { Caller } from '../db/queries/api-keys.ts'
import { ProblemError } from '../errors.ts'
import type { ApiDependencies } from './api.ts'
import { authenticate } from './guard.ts'
import type { Route } from './route.ts'

/**
 * The caller of a request, counted against the limits of its key. A key that is not valid is counted against its
 * sender's address; a valid one passes whatever came from there, so that nobody is locked out by a neighbour.
 * Throws 401, or 429 beyond a limit.
 */
export async function admit(dependencies: ApiDependencies, route: Route, ctx: Context): Promise<Caller> {
  const { findCaller, rateLimits } = dependencies
  const caller = await authenticate(findCaller, ctx.get('x-api-key')).catch(async (error: unknown) => {
    if (isUnauthenticated(error)) await rateLimits.authentication?.(ctx.ip)
    throw error
  })
  const limit = rateLimits[route.limit ?? 'management']
  // Refusals that follow carry the headers too: they were counted.
  if (limit !== null) ctx.set(await limit(caller.apiKeyId))
  return caller
}

function isUnauthenticated(error: unknown): boolean {
  return error instanceof ProblemError && error.problem.status === 401
}

import type { Context } from 'koa'
import type { Caller } from '../db/queries/api-keys.ts'
import { ProblemError } from '../errors.ts'
import type { ApiDependencies } from './api.ts'
import { authenticate } from './guard.ts'
import type { Route } from './route.ts'
import { redeemTicket } from './stream-tickets.ts'

/**
 * The caller of a request, counted against the limits of its key. A key that is not valid is counted against its
 * sender's address; a valid one passes whatever came from there, so that nobody is locked out by a neighbour.
 * Throws 401, or 429 beyond a limit.
 */
export async function admit(dependencies: ApiDependencies, route: Route, ctx: Context): Promise<Caller> {
  const { dataSource, rateLimits } = dependencies
  const ticket = ticketOf(route, ctx)
  const identified =
    ticket === null ? authenticate(dataSource, ctx.get('x-api-key')) : redeemTicket(dataSource, ticket)
  const caller = await identified.catch(async (error: unknown) => {
    if (isUnauthenticated(error)) await rateLimits.authentication?.(ctx.ip)
    throw error
  })
  const limit = rateLimits[route.limit ?? 'management']
  // Refusals that follow carry the headers too: they were counted.
  if (limit !== null) ctx.set(await limit(caller.apiKeyId))
  return caller
}

/** The ticket in the query, where the route takes one and there is no key. */
function ticketOf({ access }: Route, ctx: Context): string | null {
  if (access.kind !== 'organisation' || access.ticket !== true || ctx.get('x-api-key') !== '') return null
  return new URLSearchParams(ctx.querystring).get('ticket')
}

function isUnauthenticated(error: unknown): boolean {
  return error instanceof ProblemError && error.problem.status === 401
}

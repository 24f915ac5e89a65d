import type { Context } from 'koa'
import type { Caller } from '../db/queries/api-keys.ts'
import { findCallerOfSession, hashSessionToken, type Session } from '../db/queries/sessions.ts'
import { ProblemError } from '../errors.ts'
import type { ApiDependencies } from './api.ts'
import { authenticate } from './guard.ts'
import type { Route } from './route.ts'
import { readSessionToken, requireSameOrigin, type SessionCookie } from './session-cookie.ts'
import { redeemTicket } from './stream-tickets.ts'

type Admitted = { caller: Caller; session: Session | null }

/** Methods that change nothing. */
const SAFE_METHODS = new Set(['GET', 'HEAD'])

/**
 * The caller of a request, counted against the limits of its key. A key that is not valid is counted against its
 * sender's address; a valid one passes whatever came from there, so that nobody is locked out by a neighbour.
 * A session stands in the place of its key, where no key is sent. Throws 401, 403 for another site's request, or 429
 * beyond a limit.
 */
export async function admit(
  dependencies: ApiDependencies,
  route: Route,
  ctx: Context,
  cookie: SessionCookie | null,
): Promise<Admitted> {
  const { dataSource, findCaller, rateLimits } = dependencies
  const bySession = async (): Promise<Admitted | null> =>
    acceptsSessions(route) && ctx.get('x-api-key') === '' ? callerOfSession(dependencies, ctx, cookie) : null
  const ticket = ticketOf(route, ctx)
  const byKey = async (): Promise<Admitted> => ({
    caller: await (ticket === null
      ? authenticate(findCaller, ctx.get('x-api-key'))
      : redeemTicket(dataSource, ticket)),
    session: null,
  })
  const admitted = await bySession()
    .then((found) => found ?? byKey())
    .catch(async (error: unknown) => {
      if (isUnauthenticated(error)) await rateLimits.authentication?.(ctx.ip)
      throw error
    })
  const limit = rateLimits[route.limit ?? 'management']
  // Refusals that follow carry the headers too: they were counted.
  if (limit !== null) ctx.set(await limit(admitted.caller.apiKeyId))
  if (admitted.session !== null && !SAFE_METHODS.has(route.method)) requireSameOrigin(ctx)
  return admitted
}

async function callerOfSession(
  { dataSource }: ApiDependencies,
  ctx: Context,
  cookie: SessionCookie | null,
): Promise<Admitted | null> {
  const token = readSessionToken(ctx, cookie)
  return token === null ? null : findCallerOfSession(dataSource, hashSessionToken(token))
}

/** A stream would outlive its session, so it is opened by a ticket. */
function acceptsSessions({ access }: Route): boolean {
  if (access.kind === 'organisation') return access.ticket !== true
  return access.kind !== 'key' || access.sessions !== false
}

/** The ticket in the query, where the route takes one and there is no key. */
function ticketOf({ access }: Route, ctx: Context): string | null {
  if (access.kind !== 'organisation' || access.ticket !== true || ctx.get('x-api-key') !== '') return null
  return new URLSearchParams(ctx.querystring).get('ticket')
}

function isUnauthenticated(error: unknown): boolean {
  return error instanceof ProblemError && error.problem.status === 401
}

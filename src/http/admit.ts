import type { Context } from 'koa'
import type { Caller } from '../db/queries/api-keys.ts'
import { findCallerOfSession, hashSessionToken, type Session } from '../db/queries/sessions.ts'
import { MIN_DEMO_KEY_LENGTH, MIN_KEY_LENGTH } from '../domain/api-key-shape.ts'
import { ProblemError, unauthenticated } from '../errors.ts'
import type { ApiDependencies } from './api.ts'
import type { Credential } from './auth-refusals.ts'
import { authenticate } from './guard.ts'
import type { Route } from './route.ts'
import { readSessionToken, requireSameOrigin, type SessionCookie } from './session-cookie.ts'
import { redeemTicket } from './stream-tickets.ts'

type Admitted = { caller: Caller; session: Session | null }

/** Methods that change nothing. */
const SAFE_METHODS = new Set(['GET', 'HEAD'])

/**
 * The caller of a request, counted against the limits of its key. A credential that is not valid is counted against its
 * sender's address. Beyond that limit nothing is looked up for the address, but for credentials that were valid here
 * lately, so that nobody is locked out by a neighbour. A session stands in the place of its key, where no key is sent.
 * Throws 401, 403 for another site's request, or 429 beyond a limit.
 */
export async function admit(
  dependencies: ApiDependencies,
  route: Route,
  ctx: Context,
  cookie: SessionCookie | null,
): Promise<Admitted> {
  const { authRefusals, rateLimits } = dependencies
  const credential = credentialOf(route, ctx, cookie)
  await authRefusals.check(ctx.ip, credential)
  const admitted = await findAdmitted(dependencies, credential).catch(async (error: unknown) => {
    const requestId = ctx.response.get('x-request-id')
    if (isUnauthenticated(error))
      await authRefusals.refused({ credential, address: ctx.ip, operationId: route.operationId, requestId })
    throw error
  })
  const limit = rateLimits[route.limit ?? 'management']
  // Refusals that follow carry the headers too: they were counted.
  if (limit !== null) ctx.set(await limit.count(admitted.caller.apiKeyId))
  if (admitted.session !== null && !SAFE_METHODS.has(route.method)) requireSameOrigin(ctx)
  return admitted
}

async function findAdmitted(dependencies: ApiDependencies, { kind, value }: Credential): Promise<Admitted> {
  const { dataSource, findCaller, known, acceptsDemoKeys } = dependencies
  const minKeyLength = acceptsDemoKeys ? MIN_DEMO_KEY_LENGTH : MIN_KEY_LENGTH
  switch (kind) {
    case 'key':
      return { caller: await authenticate(findCaller, value, minKeyLength), session: null }
    case 'ticket':
      return { caller: await redeemTicket(dataSource, value), session: null }
    case 'session': {
      const found = await findCallerOfSession(dataSource, hashSessionToken(value))
      if (found === null) throw unauthenticated()
      known.add(found.session.hash)
      return found
    }
  }
}

/** A key goes before everything else. Without one: a session's token or a ticket, where the route takes it. */
function credentialOf(route: Route, ctx: Context, cookie: SessionCookie | null): Credential {
  const { access } = route
  const key = ctx.get('x-api-key')
  if (key !== '') return { kind: 'key', value: key }
  if (access.kind === 'organisation' && access.ticket === true) {
    const ticket = new URLSearchParams(ctx.querystring).get('ticket')
    return ticket === null ? { kind: 'key', value: '' } : { kind: 'ticket', value: ticket }
  }
  const token = acceptsSessions(route) ? readSessionToken(ctx, cookie) : null
  return token === null ? { kind: 'key', value: '' } : { kind: 'session', value: token }
}

/** A stream would outlive its session, so it is opened by a ticket. */
function acceptsSessions({ access }: Route): boolean {
  if (access.kind === 'organisation') return access.ticket !== true
  return access.kind !== 'key' || access.sessions !== false
}

function isUnauthenticated(error: unknown): boolean {
  return error instanceof ProblemError && error.problem.status === 401
}

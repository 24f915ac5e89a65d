import type { Context } from 'koa'
import { hashCredential, isKeyShaped, MIN_DEMO_KEY_LENGTH, MIN_KEY_LENGTH } from '../../credentials.ts'
import type { Caller, KeyCaller } from '../../domain/actor.ts'
import type { OperatorScope } from '../../domain/permissions.ts'
import { requireScope, type KnownOperatorKey } from '../../accounts/operator.ts'
import { findCallerOfSession, findOperatorSession, type Session } from '../../db/queries/sessions.ts'
import { notFound, ProblemError, unauthenticated } from '../../problem-error.ts'
import { redeemTicket } from '../../accounts/one-use-tokens.ts'
import type { ApiDependencies } from '../api.ts'
import type { Route } from '../route.ts'
import type { Credential } from './refusals.ts'
import { isLoopbackRequest, requireOwnHost } from '../middleware/requested-host.ts'
import { isFromNoPage, readSessionToken, requireSameOrigin, type SessionCookie } from './session-cookie.ts'
import type { CallerLookup } from '../../accounts/caller-lookup.ts'

/** Who sent a request; `operator` where it was an operator key. */
export type Authenticated = {
  caller: Caller
  session: Session | null
  operator: KnownOperatorKey | null
}

/** A portal link authenticates no request: it is exchanged for a session. */
type RequestCredential = { kind: Exclude<Credential['kind'], 'portal_link'>; value: string }

/** Where there is no member: of open routes and of an operator key. The caller has no rights. */
const ANONYMOUS: Authenticated = {
  caller: {
    organisationId: '',
    memberId: '',
    apiKeyId: null,
    keyHash: null,
    fullAccess: false,
    permissions: [],
    isErasing: false,
  },
  session: null,
  operator: null,
}

/**
 * Authenticates a request by its API key, operator key, session or ticket, and counts it against the limits of the key
 * where `isCounted`.
 * An invalid credential counts against its sender's address. Beyond that limit only credentials that were valid here
 * lately, and a few others, are checked for the address, so that one sender cannot lock out others that share it.
 * Throws 401, 404 while the organisation is being erased, 403 for a request of another origin or a missing scope, 421 for
 * a session at another host than the service's own, or 429 beyond a limit.
 */
export async function authenticate(
  dependencies: ApiDependencies,
  route: Route,
  ctx: Context,
  cookie: SessionCookie | null,
  isCounted = true,
): Promise<Authenticated> {
  const { authRefusals, rateLimits } = dependencies
  const credential = credentialOf(dependencies, route, ctx, cookie)
  const requestId = ctx.response.get('x-request-id')
  const asked = { credential, address: ctx.ip, operationId: route.operationId, requestId }
  const authenticated = await authRefusals.guard(asked, () =>
    findByCredential(dependencies, credential, isLoopbackRequest(ctx)),
  )
  const { operator, session } = authenticated
  const limit = isCounted ? rateLimits[route.limit ?? 'management'] : null
  // Set at once, so that later refusals carry the headers too.
  if (limit !== null) ctx.set(await limit.count(limitedId(authenticated)))
  if (authenticated.caller.isErasing) throw notFound('organisation')
  if (operator !== null) requireScope(operator, scopeOf(route))
  if (session !== null) {
    requireOwnHost(ctx, dependencies.publicUrl)
    // What changes something, or writes to the audit trail in the member's name.
    const leavesTraces = route.method !== 'GET' || route.audited === true
    if (leavesTraces || !isFromNoPage(ctx, dependencies)) requireSameOrigin(ctx)
  }
  return authenticated
}

/** The statuses of a credential that makes no caller; the limits of its sender and of its key stay in force. */
const REFUSED: ReadonlySet<number> = new Set([401, 403, 404, 421])

/** Finds the caller of an open route, where the route recognises callers; a request without a valid credential has none. */
export async function recognise(
  dependencies: ApiDependencies,
  route: Route,
  ctx: Context,
  cookie: SessionCookie | null,
): Promise<Authenticated> {
  const { access } = route
  if (access.kind !== 'open' || access.recognises?.(dependencies) !== true) return ANONYMOUS
  if (credentialOf(dependencies, route, ctx, cookie).value === '') return ANONYMOUS
  return authenticate(dependencies, route, ctx, cookie).catch((error: unknown) => {
    if (error instanceof ProblemError && REFUSED.has(error.problem.status)) return ANONYMOUS
    throw error
  })
}

/** An operator, an API key, or a member that portal links signed in: all its sessions count together. */
function limitedId({ operator, caller }: Authenticated): string {
  if (operator !== null) return `operator:${operator.name}`
  return caller.apiKeyId ?? `member:${caller.organisationId}/${caller.memberId}`
}

async function findByCredential(
  dependencies: ApiDependencies,
  { kind, value }: RequestCredential,
  isLoopback: boolean,
): Promise<Authenticated> {
  const { dataSource, findCaller, known, operatorKeys, acceptsDemoKeys } = dependencies
  // The demo key is published: a page whose name resolves to this machine must not use it.
  const minKeyLength = acceptsDemoKeys && isLoopback ? MIN_DEMO_KEY_LENGTH : MIN_KEY_LENGTH
  switch (kind) {
    case 'key':
      return { ...ANONYMOUS, caller: await authenticateApiKey(findCaller, value, minKeyLength) }
    case 'ticket':
      return { ...ANONYMOUS, caller: await redeemTicket(dataSource, value) }
    case 'session': {
      const found = await findCallerOfSession(dataSource, hashCredential(value))
      if (found === null) throw unauthenticated()
      known.add(found.session.hash)
      return { ...ANONYMOUS, ...found }
    }
    case 'operator': {
      const operator = operatorKeys.find(hashCredential(value))
      if (operator === null) throw unauthenticated('x-operator-key')
      known.add(operator.keyHash)
      return { ...ANONYMOUS, operator }
    }
    case 'operator_session': {
      const session = await findOperatorSession(dataSource, hashCredential(value))
      const operator = session === null ? null : operatorKeys.find(session.keyHash)
      if (session === null || operator?.name !== session.operator) throw unauthenticated('x-operator-key')
      known.add(session.hash)
      return { ...ANONYMOUS, session, operator }
    }
  }
}

/** Prefers an API key. Without one: an operator key, a session's token or a ticket, where the route accepts it. */
function credentialOf(
  { operatorKeys }: ApiDependencies,
  route: Route,
  ctx: Context,
  cookie: SessionCookie | null,
): RequestCredential {
  const { access } = route
  const operatorKey = ctx.get('x-operator-key')
  if (access.kind === 'operator') {
    const token = operatorKey === '' && access.sessions === true ? readSessionToken(ctx, cookie) : null
    return token === null
      ? { kind: 'operator', value: operatorKey }
      : { kind: 'operator_session', value: token }
  }
  const key = ctx.get('x-api-key')
  if (key !== '') return { kind: 'key', value: key }
  const acceptsOperators = access.kind === 'organisation' && access.operatorScope !== undefined
  if (acceptsOperators && operatorKeys.isConfigured && operatorKey !== '')
    return { kind: 'operator', value: operatorKey }
  if (access.kind === 'organisation' && access.ticket === true) {
    const ticket = new URLSearchParams(ctx.querystring).get('ticket')
    return ticket === null ? { kind: 'key', value: '' } : { kind: 'ticket', value: ticket }
  }
  const token = acceptsSessions(route) ? readSessionToken(ctx, cookie) : null
  return token === null ? { kind: 'key', value: '' } : { kind: 'session', value: token }
}

/** A stream can outlive a session, so a browser opens it with a ticket. */
function acceptsSessions({ access }: Route): boolean {
  if (access.kind === 'organisation') return access.ticket !== true
  return access.kind !== 'key' || access.sessions !== false
}

function scopeOf({ access, operationId }: Route): OperatorScope {
  if (access.kind === 'operator') return access.scope
  if (access.kind === 'organisation' && access.operatorScope !== undefined) return access.operatorScope
  throw new Error(`${operationId} is not for operators`)
}

/** Looked up in place of a malformed key, so that a refusal takes equally long. No key is that short. */
const NO_KEY = ''

/**
 * Returns the caller of the `x-api-key` header. Throws the same 401, after the same work, for every reason. Node joins
 * two headers as `a, b`, which is malformed because of its space.
 */
export async function authenticateApiKey(
  findCaller: CallerLookup,
  header: string,
  minKeyLength = MIN_KEY_LENGTH,
): Promise<KeyCaller> {
  const caller = await findCaller(isKeyShaped(header, minKeyLength) ? header : NO_KEY)
  if (caller === null) throw unauthenticated()
  return caller
}

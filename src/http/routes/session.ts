import { requireKey } from '../../accounts/caller-lookup.ts'
import { endSession, openSession } from '../../accounts/sessions.ts'
import { findIdentity } from '../../db/queries/sessions.ts'
import type { ApiDependencies } from '../api.ts'
import { clearSession, requireSessionCookie, storeSession } from '../auth/session-cookie.ts'
import type { Route, RouteRequest } from '../route.ts'
import { SessionSchema } from '../schemas/session.ts'
import { unauthenticated } from '../../problem-error.ts'
import { FULL_ACCESS, missingPermissions } from '../../domain/permissions.ts'
import { RETRY_WAITS_MS } from '../../domain/retry-schedule.ts'

const PATH = '/api/session'

const signInRoute: Route = {
  method: 'POST',
  path: PATH,
  operationId: 'signIn',
  summary: 'Sign a browser in with an API key',
  description:
    'For the developer area: the answer sets a cookie that stands for the key for 12 hours at most, and no longer than the key is valid. Over https, or on loopback. The key comes in the header; a session cannot make another one. The session that the browser had ends.',
  access: { kind: 'key', sessions: false },
  countsAddress: true,
  responses: {
    200: {
      description: 'Signed in',
      schema: SessionSchema,
      headers: { 'Set-Cookie': 'The session: HttpOnly, SameSite=Strict, over https Secure and __Host-' },
    },
    403: {
      description: '`needs_tls`: the page came over plain HTTP from another machine',
      problem: ['needs_tls'],
    },
  },
  async handle(dependencies, request) {
    const cookie = requireSessionCookie(request.cookie)
    const session = await openSession(dependencies, requireKey(request.actor), request.sentSession())
    const headers = { 'set-cookie': storeSession(dependencies, cookie, session) }
    return { status: 200, headers, body: await presentSession(dependencies, request, session.expiresAt) }
  },
}

const whoAmIRoute: Route = {
  method: 'GET',
  path: PATH,
  operationId: 'getSession',
  summary: 'See who one is: organisation, member and permissions',
  access: { kind: 'key' },
  responses: { 200: { description: 'The caller', schema: SessionSchema } },
  async handle(dependencies, request) {
    const expiresAt = request.session?.expiresAt ?? null
    return { status: 200, body: await presentSession(dependencies, request, expiresAt) }
  },
}

const signOutRoute: Route = {
  method: 'DELETE',
  path: PATH,
  operationId: 'signOut',
  summary: 'End the session that the request came with',
  access: { kind: 'key' },
  responses: {
    204: { description: 'Signed out; the cookie is taken back' },
    403: { description: '`cross_site`: a page of another site asked', problem: ['cross_site'] },
  },
  async handle(dependencies, request) {
    const { actor, cookie } = request
    // That of the cookie, also where a key authenticates the request.
    await endSession(dependencies, actor, request.sentSession())
    return { status: 204, headers: cookie === null ? {} : { 'set-cookie': clearSession(cookie) } }
  },
}

export const sessionRoutes: readonly Route[] = [signInRoute, whoAmIRoute, signOutRoute]

/**
 * Presents the caller with what a page needs to show deliveries. The address of Temporal's UI is shown with full
 * access only: such a member is the nearest to an operator. `expiresAt` null: authenticated by a key.
 */
async function presentSession(
  { dataSource, temporalUi }: ApiDependencies,
  { actor }: RouteRequest,
  expiresAt: Date | null,
) {
  const { organisationId, memberId, fullAccess, permissions } = actor
  const identity = await findIdentity(dataSource, organisationId, memberId)
  // The member is being removed, and callers are known for a moment longer.
  if (identity === null) throw unauthenticated()
  const { organisationName, timeZone, memberName } = identity
  return {
    organisation: { id: organisationId, name: organisationName, timeZone },
    member: { id: memberId, name: memberName, fullAccess, permissions },
    expiresAt: expiresAt?.toISOString() ?? null,
    retryWaitsMs: RETRY_WAITS_MS,
    temporalUi: missingPermissions(actor, [FULL_ACCESS]).length === 0 ? temporalUi : null,
  }
}

import { describeCaller, endSession, openSession } from '../sessions.ts'
import type { Route } from '../route.ts'
import { SessionSchema } from '../schemas/session.ts'

const PATH = '/api/session'

const signInRoute: Route = {
  method: 'POST',
  path: PATH,
  operationId: 'signIn',
  summary: 'Sign a browser in with an API key',
  description:
    'For the developer area: the answer sets a cookie that stands for the key for 12 hours at most, and no longer than the key is valid. Over https, or on loopback. The key comes in the header; a session cannot make another one.',
  access: { kind: 'key', sessions: false },
  countsAddress: true,
  responses: {
    200: {
      description: 'Signed in',
      schema: SessionSchema,
      headers: { 'Set-Cookie': 'The session: HttpOnly, SameSite=Strict, over https Secure and __Host-' },
    },
    403: { description: '`needs_tls`: the page came over plain HTTP from another machine', problem: true },
  },
  async handle(dependencies, request) {
    const { setCookie, expiresAt } = await openSession(dependencies, request)
    const body = await describeCaller(dependencies, request, expiresAt)
    return { status: 200, headers: { 'set-cookie': setCookie }, body }
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
    return { status: 200, body: await describeCaller(dependencies, request, expiresAt) }
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
    403: { description: '`cross_site`: a page of another site asked', problem: true },
  },
  async handle(dependencies, request) {
    return { status: 204, headers: await endSession(dependencies, request) }
  },
}

export const sessionRoutes: readonly Route[] = [signInRoute, whoAmIRoute, signOutRoute]

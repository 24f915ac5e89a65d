import { Type } from 'typebox'
import {
  createPortalLink,
  developerAddress,
  PORTAL_PATH_PATTERN,
  redeemPortalLink,
} from '../../accounts/one-use-tokens.ts'
import type { FieldError } from '../../problem-error.ts'
import { requireSessionCookie, storeSession } from '../auth/session-cookie.ts'
import { operatorActor, param, typedRoute, type Route } from '../route.ts'
import { timestamp } from '../schemas/common.ts'

/** Long enough for a redirect and a slow page, too short to be of use to who finds the link later. */
const MAX_LINK_SECONDS = 300

const CreatePortalLinkSchema = Type.Object(
  {
    path: Type.Optional(
      Type.String({
        title: 'PortalPath',
        maxLength: 200,
        default: '/',
        examples: ['/webhooks'],
        documented: { pattern: PORTAL_PATH_PATTERN },
        description:
          'Where it leads, within /developer: `/`, `/webhooks`, `/webhooks/{id}` or `/webhooks/{id}/deliveries/{deliveryId}`',
      }),
    ),
    expiresInSeconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_LINK_SECONDS,
        default: MAX_LINK_SECONDS,
        description: 'How long the link can be opened',
      }),
    ),
  },
  { title: 'CreatePortalLink', additionalProperties: false },
)

const PortalLinkSchema = Type.Object(
  {
    url: Type.String({
      description: 'For the browser of this member only: opens the developer area, once. Shown this once',
      examples: ['https://hooks.example.com/developer#portal=Zk3vXy0pQm'],
    }),
    expiresAt: timestamp('2026-05-04T08:05:00.000Z'),
  },
  { title: 'PortalLink' },
)

const OpenPortalLinkSchema = Type.Object(
  {
    token: Type.String({
      maxLength: 200,
      description: 'What follows `#portal=` in the link',
      examples: ['Zk3vXy0pQm'],
    }),
    replace: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'The user has confirmed that the member of the link takes the place of who is signed in',
      }),
    ),
  },
  { title: 'OpenPortalLink', additionalProperties: false },
)

const OpenedPortalLinkSchema = Type.Object(
  { address: Type.String({ description: 'Where the link leads, on this host', examples: ['/developer'] }) },
  { title: 'OpenedPortalLink' },
)

const MAX_BODY_BYTES = 1_024

const createRoute = typedRoute({
  method: 'POST',
  path: '/api/operator/organisations/:orgId/members/:memberId/portal-links',
  operationId: 'createPortalLink',
  summary: 'Create a link that signs a member in to the developer area, once',
  description:
    'For the browser of this member only. The first to open it has a session of the member for 12 hours at most; the token is in the fragment of the URL, which browsers send to no server. `path` is one within /developer.',
  access: { kind: 'operator', scope: 'portal' },
  body: { schema: CreatePortalLinkSchema, maxBytes: MAX_BODY_BYTES, rules: portalPathRules },
  responses: {
    201: { description: 'The link; it is shown this once', schema: PortalLinkSchema },
    404: { description: 'No such organisation or member', problem: true },
  },
  async handle(dependencies, request) {
    const actor = operatorActor(request)
    const { path = '/', expiresInSeconds: seconds = MAX_LINK_SECONDS } = request.body
    const link = { memberId: param(request, 'memberId'), path, seconds }
    const { token, expiresAt } = await createPortalLink(dependencies, actor, link)
    const url = `${request.baseUrl()}/developer#portal=${token}`
    return { status: 201, body: { url, expiresAt: expiresAt.toISOString() } }
  },
})

/** Refuses a path that is no page of the developer area, so that no link leads out of it. */
function portalPathRules({ path }: Readonly<Record<string, unknown>>): FieldError[] {
  if (typeof path !== 'string' || developerAddress(path) !== null) return []
  const detail = 'must be /, /webhooks, /webhooks/{id} or /webhooks/{id}/deliveries/{deliveryId}'
  return [{ pointer: '/path', code: 'wrong_format', detail }]
}

const openRoute = typedRoute({
  method: 'POST',
  path: '/api/session/portal-link',
  operationId: 'openPortalLink',
  summary: 'Sign a browser in with a portal link',
  description:
    'For the developer area: uses the link up, and sets a cookie for a session of its member, which lasts 12 hours at most. The session that the browser had ends. Over https, or on loopback, and from a page of this host only.',
  access: { kind: 'open' },
  sameOrigin: true,
  body: { schema: OpenPortalLinkSchema, maxBytes: MAX_BODY_BYTES },
  responses: {
    200: {
      description: 'Signed in',
      schema: OpenedPortalLinkSchema,
      headers: { 'Set-Cookie': 'The session, as for `POST /api/session`' },
    },
    401: {
      description: '`invalid_portal_link`: it is unknown, has expired, or was already used',
      problem: true,
    },
    403: { description: '`cross_site` or `needs_tls`', problem: true },
    409: {
      description:
        '`another_member_signed_in`: the link is not used up. Ask the user, who sees `signedIn` and `requested`, and send it again with `replace`',
      problem: ['another_member_signed_in'],
    },
    429: { description: 'Too many requests from this address', problem: true },
    503: { description: 'The database cannot be reached; see Retry-After', problem: true },
  },
  async handle(dependencies, request) {
    const cookie = requireSessionCookie(request.cookie)
    const { address, requestId } = request.actor
    const { token, replace: isConfirmed = false } = request.body
    const present = { session: request.sentSession(), isConfirmed }
    const credential = { kind: 'portal_link', value: token } as const
    const asked = { credential, address, requestId, operationId: 'openPortalLink' }
    const opened = await dependencies.authRefusals.guard(asked, () =>
      redeemPortalLink(dependencies, token, { address, requestId }, present),
    )
    const headers = { 'set-cookie': storeSession(dependencies, cookie, opened.session) }
    return { status: 200, headers, body: { address: opened.address } }
  },
})

export const portalLinkRoutes: readonly Route[] = [createRoute, openRoute]

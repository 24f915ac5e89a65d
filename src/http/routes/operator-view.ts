import { countForOperators, listOperatorWebhooks } from '../../db/queries/operator-view.ts'
import { deleteOperatorSession, insertOperatorSession } from '../../db/queries/sessions.ts'
import type { WebhookRow } from '../../db/queries/webhooks.ts'
import { hashCredential, newToken } from '../../credentials.ts'
import { holdWebhook, releaseWebhook } from '../../webhooks/change-webhook.ts'
import { clearSession, requireSessionCookie, storeSession } from '../auth/session-cookie.ts'
import type { ApiDependencies } from '../api.ts'
import { listRoute } from '../list-route.ts'
import { presenter } from '../presenters/presenter.ts'
import { holdOf, presentCounts, presentOperatorWebhook } from '../presenters/webhook.ts'
import { operatorOf, param, typedRoute, type Route, type RouteRequest } from '../route.ts'
import { EXAMPLE_IDS } from '../schemas/common.ts'
import {
  HeldWebhookSchema,
  HoldWebhookSchema,
  OperatorOverviewSchema,
  OperatorSessionSchema,
  OperatorWebhookFilterSchema,
  OperatorWebhookSchema,
} from '../schemas/operator-view.ts'

const SESSION = '/api/operator/session'
const WEBHOOK = '/api/operator/organisations/:orgId/webhooks/:id'
const MAX_BODY_BYTES = 16 * 1024

const FIRST_WEBHOOK = { orgId: '$response.body#/data/0/organisation/id', id: '$response.body#/data/0/id' }

const presentShown = presenter(HeldWebhookSchema)

const observe: Route['access'] = { kind: 'operator', scope: 'observe', sessions: true }
const manage: Route['access'] = { kind: 'operator', scope: 'manage', sessions: true }

const overviewRoute: Route = {
  method: 'GET',
  path: '/api/operator/overview',
  operationId: 'getOperatorOverview',
  summary: 'See how all organisations stand, at a glance',
  description: 'Counts only, each bounded, so that it costs the same with many organisations.',
  access: observe,
  responses: { 200: { description: 'The counts', schema: OperatorOverviewSchema } },
  async handle({ dataSource, readBacklog }) {
    const [counts, backlog] = await Promise.all([countForOperators(dataSource), readBacklog()])
    return { status: 200, body: presentCounts(counts, backlog) }
  },
}

const webhooksRoute = listRoute({
  path: '/api/operator/webhooks',
  operationId: 'listOperatorWebhooks',
  summary: 'List the webhooks of all organisations in a state that needs attention',
  description:
    'Since when, why, and how many deliveries wait, without payloads, secrets and the queries of URLs. A webhook that was switched off while its incident was open is in two lists.',
  access: observe,
  title: 'OperatorWebhookList',
  item: OperatorWebhookSchema,
  what: 'Webhooks',
  order: 'Newest webhooks first; fewer than `limit` also before the last page',
  cursorPrefix: 'w1',
  exampleId: EXAMPLE_IDS.webhook,
  filter: OperatorWebhookFilterSchema,
  links: { holdWebhook: FIRST_WEBHOOK, releaseWebhook: FIRST_WEBHOOK },
  open:
    ({ dataSource }, { query: { state } }) =>
    ({ after, limit }) =>
      listOperatorWebhooks(dataSource, { state, before: after, limit }),
  present: (row, { query }, { temporalUi }) => presentOperatorWebhook(row, query.state, temporalUi),
})

const disableRoute = typedRoute({
  method: 'POST',
  path: `${WEBHOOK}/disable`,
  operationId: 'holdWebhook',
  summary: 'Disable a webhook, and hold it so',
  description:
    'Stops its deliveries as its organisation does with `enabled: false`: an attempt under way finishes first. The organisation sees since when and why, and cannot enable the webhook until the hold ends. Repeating it changes nothing but the reason. The audit trail of the organisation records it.',
  access: manage,
  body: { schema: HoldWebhookSchema, maxBytes: MAX_BODY_BYTES },
  responses: { 200: { description: 'Held', schema: HeldWebhookSchema } },
  async handle(dependencies, request) {
    const of = await webhookOf(dependencies, request)
    const webhook = await holdWebhook(dependencies, operatorOf(request), of, request.body.reason)
    return { status: 200, body: presentHeld(webhook) }
  },
})

const enableRoute: Route = {
  method: 'POST',
  path: `${WEBHOOK}/enable`,
  operationId: 'releaseWebhook',
  summary: "End the operator's hold on a webhook",
  description:
    'It is enabled again if it was before the hold, and goes on as after `enabled: true`. One that is not held stays as it is. The audit trail of the organisation records it.',
  access: manage,
  responses: { 200: { description: 'Not held', schema: HeldWebhookSchema } },
  async handle(dependencies, request) {
    const of = await webhookOf(dependencies, request)
    return { status: 200, body: presentHeld(await releaseWebhook(dependencies, operatorOf(request), of)) }
  },
}

const signInRoute: Route = {
  method: 'POST',
  path: SESSION,
  operationId: 'signInOperator',
  summary: 'Sign a browser in with an operator key',
  description:
    "For the operator's pages at `/operator`: the answer sets a cookie that stands for the key for 12 hours at most, and no longer than the service has the key. It opens what these pages need, and nothing else of the operator API. Over https, or on loopback.",
  access: { kind: 'operator', scope: 'observe' },
  countsAddress: true,
  responses: {
    200: {
      description: 'Signed in',
      schema: OperatorSessionSchema,
      headers: { 'Set-Cookie': 'The session: HttpOnly, SameSite=Strict, over https Secure and __Host-' },
    },
    403: {
      description: '`missing_scope`, or `needs_tls`: the page came over plain HTTP from another machine',
      problem: ['missing_scope', 'needs_tls'],
    },
  },
  async handle({ dataSource, clock, temporalUi }, request) {
    const cookie = requireSessionCookie(request.cookie)
    const token = newToken()
    const expiresAt = await insertOperatorSession(dataSource, {
      hash: hashCredential(token),
      ...operatorOf(request),
    })
    const headers = { 'set-cookie': storeSession({ clock }, cookie, { token, expiresAt }) }
    return { status: 200, headers, body: presentSession(request, expiresAt, temporalUi) }
  },
}

const whoAmIRoute: Route = {
  method: 'GET',
  path: SESSION,
  operationId: 'getOperatorSession',
  summary: 'See which operator key one has, and its scopes',
  access: observe,
  responses: { 200: { description: 'The operator', schema: OperatorSessionSchema } },
  handle({ temporalUi }, request) {
    const body = presentSession(request, request.session?.expiresAt ?? null, temporalUi)
    return Promise.resolve({ status: 200, body })
  },
}

const signOutRoute: Route = {
  method: 'DELETE',
  path: SESSION,
  operationId: 'signOutOperator',
  summary: "End the operator's session that the request came with",
  access: observe,
  responses: { 204: { description: 'Signed out; the cookie is taken back' } },
  async handle({ dataSource }, request) {
    const { cookie } = request
    const hash = request.sentSession()
    if (hash !== null) await deleteOperatorSession(dataSource, hash)
    return { status: 204, headers: cookie === null ? {} : { 'set-cookie': clearSession(cookie) } }
  },
}

export const operatorViewRoutes: readonly Route[] = [
  overviewRoute,
  webhooksRoute,
  disableRoute,
  enableRoute,
  signInRoute,
  whoAmIRoute,
  signOutRoute,
]

async function webhookOf({ requireOrganisation }: ApiDependencies, request: RouteRequest) {
  const [organisationId, webhookId] = [param(request, 'orgId'), param(request, 'id')]
  await requireOrganisation(organisationId)
  return { organisationId, webhookId }
}

function presentHeld(webhook: WebhookRow) {
  return presentShown({ ...webhook, operatorHold: holdOf(webhook) })
}

function presentSession(
  request: RouteRequest,
  expiresAt: Date | null,
  temporalUi: ApiDependencies['temporalUi'],
) {
  const { name, scopes } = operatorOf(request)
  return { name, scopes, expiresAt: expiresAt?.toISOString() ?? null, temporalUi }
}

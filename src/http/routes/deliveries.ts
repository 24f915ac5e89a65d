import { findDelivery, listAttempts } from '../../db/queries/deliveries.ts'
import { findFirstAttemptQueue } from '../../db/queries/backlog.ts'
import { listDeliveries, listRecentDeliveries, MAX_RECENT } from '../../db/queries/delivery-list.ts'
import { deliveryStats } from '../../db/queries/overview.ts'
import { readDeliveryRequest } from '../../deliveries/retry/read-delivery-request.ts'
import { WEBHOOK_MANAGE, WEBHOOK_READ } from '../../domain/permissions.ts'
import { notFound, requirePermissions } from '../../problem-error.ts'
import {
  presentDelivery,
  presentDeliveryDetail,
  presentDeliveryRequest,
  presentDeliveryStats,
} from '../presenters/delivery.ts'
import { streamText, listRoute } from '../list-route.ts'
import { param, typedRoute, type Route } from '../route.ts'
import { DeliveryDetailSchema, DeliveryRequestSchema } from '../schemas/delivery-detail.ts'
import {
  DeliveryListFilterSchema,
  DeliverySchema,
  DeliveryStatsSchema,
  RecentDeliveriesSchema,
  RecentDeliveryQuerySchema,
} from '../schemas/delivery.ts'
import { parseDeliveryFilter, PAYLOAD_ERASED } from '../schemas/retry.ts'
import { EXAMPLE_IDS } from '../schemas/common.ts'
import { webhookOfPath } from './webhooks.ts'

const WEBHOOKS = '/api/orgs/:orgId/webhooks'
const COLLECTION = `${WEBHOOKS}/:id/deliveries`

const FIRST_DELIVERY = { deliveryId: '$response.body#/data/0/id' }

const statsRoute: Route = {
  method: 'GET',
  path: `${WEBHOOKS}/delivery-stats`,
  operationId: 'getDeliveryStats',
  summary: 'See how the deliveries of each webhook stand',
  description:
    'With the payloads of the latest attempts. It is streamed: where the connection ends without the end of the body, something is missing.',
  access: { kind: 'organisation', permission: WEBHOOK_READ },
  responses: { 200: { description: 'Counts and the latest attempt', schema: DeliveryStatsSchema } },
  async handle({ dataSource, catalogue }, { actor }) {
    const stats = deliveryStats(dataSource, actor.organisationId)
    const stream = await streamText(() => presentDeliveryStats(stats, actor, catalogue.permissionFor))
    return { status: 200, text: { type: 'application/json', stream } }
  },
}

const deliveriesRoute = listRoute({
  path: COLLECTION,
  operationId: 'listDeliveries',
  summary: "List a webhook's deliveries, newest first",
  description:
    'One request looks at 5,000 deliveries at most for those that fit. Where it ends there, the page is shorter than `limit` or empty, `searchedUntil` says how far back it has looked, and `nextCursor` goes on.',
  access: { kind: 'organisation', permission: WEBHOOK_READ },
  title: 'DeliveryList',
  item: DeliverySchema,
  what: 'Deliveries',
  cursorPrefix: 'd1',
  exampleId: EXAMPLE_IDS.delivery,
  filter: DeliveryListFilterSchema,
  isSearched: true,
  links: {
    getDelivery: FIRST_DELIVERY,
    getDeliveryRequest: FIRST_DELIVERY,
    retryDelivery: FIRST_DELIVERY,
    discardDelivery: FIRST_DELIVERY,
  },
  async open(dependencies, request) {
    const { actor, query } = request
    const filter = { ...parseDeliveryFilter(query), search: query.search ?? null }
    const { id } = await webhookOfPath(dependencies, request)
    return (range) =>
      listDeliveries(dependencies.dataSource, actor.organisationId, id, { ...filter, ...range })
  },
  present: (delivery, { actor }) => presentDelivery(delivery, actor),
})

const recentRoute = typedRoute({
  method: 'GET',
  path: `${WEBHOOKS}/recent-deliveries`,
  operationId: 'listRecentDeliveries',
  summary: 'List the newest deliveries of all webhooks, newest first',
  description: `For a view of what happens now. Of each webhook the newest ${MAX_RECENT} deliveries are looked at for those that fit; older ones are in the webhook's own list.`,
  access: { kind: 'organisation', permission: WEBHOOK_READ },
  query: RecentDeliveryQuerySchema,
  responses: { 200: { description: 'The newest deliveries', schema: RecentDeliveriesSchema } },
  async handle({ dataSource }, { actor, query: { state, eventKey, limit } }) {
    const filter = { state: state ?? null, eventKey: eventKey ?? null, limit }
    const found = await listRecentDeliveries(dataSource, actor.organisationId, filter)
    return { status: 200, body: { data: found.map((delivery) => presentDelivery(delivery, actor)) } }
  },
})

const getRoute: Route = {
  method: 'GET',
  path: `${COLLECTION}/:deliveryId`,
  operationId: 'getDelivery',
  summary: 'Get one delivery with its payload and its attempts',
  description: "Needs the event key's own permission as well.",
  access: { kind: 'organisation', permission: WEBHOOK_READ },
  responses: { 200: { description: 'The delivery', schema: DeliveryDetailSchema } },
  async handle({ dataSource, catalogue }, request) {
    const { actor } = request
    const { organisationId } = actor
    const [webhookId, id] = [param(request, 'id'), param(request, 'deliveryId')]
    const delivery = await findDelivery(dataSource, organisationId, webhookId, id)
    if (delivery === null) throw notFound('delivery')
    requirePermissions(actor, [catalogue.permissionFor(delivery.eventKey)])
    // Up to the count that was read: an attempt may have been recorded since.
    const attempts = await listAttempts(dataSource, organisationId, id, delivery.attemptCount)
    const isPending = delivery.state === 'pending'
    const queue = isPending ? await findFirstAttemptQueue(dataSource, organisationId, webhookId, id) : null
    const json = presentDeliveryDetail(delivery, attempts, queue, actor, catalogue.permissionFor)
    return { status: 200, json }
  },
}

const requestRoute: Route = {
  method: 'GET',
  path: `${COLLECTION}/:deliveryId/request`,
  operationId: 'getDeliveryRequest',
  summary: 'Get the signed request of a delivery, to send it by hand',
  description:
    "To the webhook's URL as it is now. Asks for the same rights as an update, and for the event key's own permission. The audit trail records it.",
  access: { kind: 'organisation', permission: WEBHOOK_MANAGE },
  audited: true,
  responses: {
    200: {
      description: 'The request, with its signature',
      schema: DeliveryRequestSchema,
      headers: { 'Cache-Control': 'no-store' },
    },
    410: { description: PAYLOAD_ERASED, problem: ['payload_erased'] },
  },
  async handle(dependencies, request) {
    const [webhookId, id] = [param(request, 'id'), param(request, 'deliveryId')]
    const found = await readDeliveryRequest(dependencies, request.actor, webhookId, id)
    return { status: 200, isSecret: true, body: presentDeliveryRequest(found) }
  },
}

export const deliveryRoutes: readonly Route[] = [
  statsRoute,
  recentRoute,
  deliveriesRoute,
  getRoute,
  requestRoute,
]

import type { Static } from 'typebox'
import {
  deliveryStats,
  findDelivery,
  listAttempts,
  listDeliveries,
  type DeliveryFilter,
} from '../../db/queries/deliveries.ts'
import { findWebhook } from '../../db/queries/webhooks.ts'
import { mayChangeWebhook, permissionForEventKey, WEBHOOK_READ } from '../../domain/permissions.ts'
import { notFound } from '../../errors.ts'
import { deliveryCursor } from '../cursor.ts'
import { requirePermissions } from '../guard.ts'
import { presentDelivery, presentDeliveryDetail, presentDeliveryStats } from '../present-delivery.ts'
import { param, routeWithQuery, type Route } from '../route.ts'
import {
  DeliveryDetailSchema,
  DeliveryListSchema,
  DeliveryQuerySchema,
  DeliveryStatsSchema,
} from '../schemas/delivery.ts'

const WEBHOOKS = '/api/orgs/:orgId/webhooks'
const COLLECTION = `${WEBHOOKS}/:id/deliveries`

const statsRoute: Route = {
  method: 'GET',
  path: `${WEBHOOKS}/delivery-stats`,
  operationId: 'getDeliveryStats',
  summary: 'See how the deliveries of each webhook stand',
  access: { kind: 'organisation', permission: WEBHOOK_READ },
  responses: { 200: { description: 'Counts and the latest attempt', schema: DeliveryStatsSchema } },
  async handle({ dataSource }, { caller }) {
    const stats = await deliveryStats(dataSource, caller.organisationId)
    return { status: 200, json: presentDeliveryStats(stats, caller) }
  },
}

const listRoute = routeWithQuery({
  method: 'GET',
  path: COLLECTION,
  operationId: 'listDeliveries',
  summary: "List a webhook's deliveries, newest first",
  access: { kind: 'organisation', permission: WEBHOOK_READ },
  query: DeliveryQuerySchema,
  responses: { 200: { description: 'One page', schema: DeliveryListSchema } },
  async handle({ dataSource }, request) {
    const { organisationId } = request.caller
    const filter = toFilter(request.query)
    const webhook = await findWebhook(dataSource, organisationId, param(request, 'id'))
    if (webhook === null) throw notFound('webhook')
    const { page, last } = await listDeliveries(dataSource, organisationId, webhook.id, filter)
    const nextCursor = last === null ? null : deliveryCursor.after(last)
    return { status: 200, body: { data: page.map(presentDelivery), nextCursor } }
  },
})

const getRoute: Route = {
  method: 'GET',
  path: `${COLLECTION}/:deliveryId`,
  operationId: 'getDelivery',
  summary: 'Get one delivery with its payload and every attempt',
  description: "Needs the event key's own permission as well.",
  access: { kind: 'organisation', permission: WEBHOOK_READ },
  responses: { 200: { description: 'The delivery', schema: DeliveryDetailSchema } },
  async handle({ dataSource }, request) {
    const { caller } = request
    const { organisationId } = caller
    const [webhookId, id] = [param(request, 'id'), param(request, 'deliveryId')]
    const delivery = await findDelivery(dataSource, organisationId, webhookId, id)
    if (delivery === null) throw notFound('delivery')
    requirePermissions(caller, [permissionForEventKey(delivery.eventKey)])
    // No further than the row said: an attempt may have been recorded since.
    const attempts = await listAttempts(dataSource, organisationId, id, delivery.attemptCount)
    const showsUrl = mayChangeWebhook(caller, delivery.subscribedEventKeys)
    return { status: 200, json: presentDeliveryDetail(delivery, attempts, showsUrl) }
  },
}

/** The statistics stand first: their path also has the shape of `/webhooks/:id`. */
export const deliveryRoutes: readonly Route[] = [statsRoute, listRoute, getRoute]

function toFilter(query: Static<typeof DeliveryQuerySchema>): DeliveryFilter {
  const { state, eventKey, since, until, limit, cursor } = query
  return {
    state: state ?? null,
    eventKey: eventKey ?? null,
    since: since === undefined ? null : new Date(since),
    until: until === undefined ? null : new Date(until),
    after: cursor === undefined ? null : deliveryCursor.parse(cursor),
    limit,
  }
}

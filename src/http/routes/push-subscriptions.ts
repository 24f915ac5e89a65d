import {
  deleteOwnPushSubscription,
  deleteOwnPushSubscriptions,
  listPushSubscriptions,
  type PushSubscriptionRow,
} from '../../db/queries/push-subscriptions.ts'
import { notFound } from '../../errors.ts'
import { audit } from '../audit.ts'
import { pushSubscriptionFieldErrors, subscribeToPush } from '../push-subscription-commands.ts'
import { param, routeWithBody, type Route } from '../route.ts'
import {
  CreatePushSubscriptionSchema,
  PushSubscriptionListSchema,
  PushSubscriptionSchema,
} from '../schemas/push-subscription.ts'

const COLLECTION = '/api/orgs/:orgId/push-subscriptions'
const MAX_BODY_BYTES = 16 * 1024

/** Everybody may look after their own browsers; nobody sees those of others. */
const access: Route['access'] = { kind: 'organisation', permission: null }

const listRoute: Route = {
  method: 'GET',
  path: COLLECTION,
  operationId: 'listPushSubscriptions',
  summary: "List the calling member's own push subscriptions",
  access,
  responses: { 200: { description: 'Oldest first', schema: PushSubscriptionListSchema } },
  async handle({ dataSource, vapidPublicKey }, { caller }) {
    const subscriptions = await listPushSubscriptions(dataSource, caller.organisationId, caller.memberId)
    return { status: 200, body: { data: subscriptions.map(presentPushSubscription), vapidPublicKey } }
  },
}

const subscribeRoute = routeWithBody({
  method: 'POST',
  path: COLLECTION,
  operationId: 'createPushSubscription',
  summary: 'Have push messages sent to a browser of the calling member',
  description:
    "The body is what the browser's `PushSubscription.toJSON()` gives. The same endpoint again changes its keys and keeps its id.",
  access,
  body: {
    schema: CreatePushSubscriptionSchema,
    maxBytes: MAX_BODY_BYTES,
    rules: (fields, { urlPolicy }) => pushSubscriptionFieldErrors(fields, urlPolicy),
  },
  responses: {
    200: { description: 'It was subscribed; its keys are the new ones', schema: PushSubscriptionSchema },
    201: {
      description: 'Subscribed',
      schema: PushSubscriptionSchema,
      headers: { Location: 'Path of the subscription' },
    },
    409: { description: 'Push is not set up, or the member has too many; see `code`', problem: true },
  },
  async handle(dependencies, request) {
    const { subscription, created } = await subscribeToPush(dependencies, request, request.body)
    const shown = presentPushSubscription(subscription)
    if (!created) return { status: 200, body: shown }
    const location = `${COLLECTION.replace(':orgId', request.caller.organisationId)}/${shown.id}`
    return { status: 201, headers: { location }, body: shown }
  },
})

const deleteRoute: Route = {
  method: 'DELETE',
  path: `${COLLECTION}/:id`,
  operationId: 'deletePushSubscription',
  summary: "Remove one of the calling member's push subscriptions",
  access,
  responses: { 204: { description: 'Removed' } },
  async handle({ dataSource }, request) {
    const { organisationId, memberId } = request.caller
    const id = param(request, 'id')
    await dataSource.transaction(async (manager) => {
      if (!(await deleteOwnPushSubscription(manager, organisationId, memberId, id)))
        throw notFound('push subscription')
      await audit(manager, request, { action: 'push_subscription.removed', details: { id } })
    })
    return { status: 204 }
  },
}

const deleteAllRoute: Route = {
  method: 'DELETE',
  path: COLLECTION,
  operationId: 'deletePushSubscriptions',
  summary: "Remove all of the calling member's push subscriptions",
  access,
  responses: { 204: { description: 'None is left' } },
  async handle({ dataSource }, request) {
    const { organisationId, memberId } = request.caller
    await dataSource.transaction(async (manager) => {
      const count = await deleteOwnPushSubscriptions(manager, organisationId, memberId)
      if (count > 0)
        await audit(manager, request, { action: 'push_subscription.removed', details: { count } })
    })
    return { status: 204 }
  },
}

export const pushSubscriptionRoutes: readonly Route[] = [
  listRoute,
  subscribeRoute,
  deleteRoute,
  deleteAllRoute,
]

/** The keys have no presenter. */
function presentPushSubscription({ id, endpoint, createdAt }: PushSubscriptionRow) {
  return { id, endpoint, createdAt: createdAt.toISOString() }
}

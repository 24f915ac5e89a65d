import { findMember } from '../../db/queries/organisations.ts'
import { listPushSubscriptions } from '../../db/queries/push-subscriptions.ts'
import {
  pushSubscriptionFieldErrors,
  subscribeToPush,
  unsubscribeAllFromPush,
  unsubscribeFromPush,
} from '../../incidents/notifications/push-subscriptions.ts'
import { presentPushSubscription } from '../presenters/presenter.ts'
import { param, typedRoute, type Route } from '../route.ts'
import {
  CreatePushSubscriptionSchema,
  PushSubscriptionListSchema,
  PushSubscriptionSchema,
} from '../schemas/push-subscription.ts'

const COLLECTION = '/api/orgs/:orgId/push-subscriptions'
const MAX_BODY_BYTES = 16 * 1024

/** Each member manages their own browsers, and sees no others. */
const access: Route['access'] = { kind: 'organisation', permission: null }

const listRoute: Route = {
  method: 'GET',
  path: COLLECTION,
  operationId: 'listPushSubscriptions',
  summary: "List the calling member's own push subscriptions",
  access,
  responses: { 200: { description: 'Oldest first', schema: PushSubscriptionListSchema } },
  async handle({ dataSource, vapidPublicKey }, { actor }) {
    const { organisationId, memberId } = actor
    const data = (await listPushSubscriptions(dataSource, organisationId, memberId)).map(
      presentPushSubscription,
    )
    const pushEnabled = (await findMember(dataSource, organisationId, memberId))?.pushEnabled ?? false
    return { status: 200, body: { data, pushEnabled, vapidPublicKey } }
  },
}

const subscribeRoute = typedRoute({
  method: 'POST',
  path: COLLECTION,
  operationId: 'createPushSubscription',
  summary: 'Have push messages sent to a browser of the calling member',
  description:
    "The body is what the browser's `PushSubscription.toJSON()` gives. The same endpoint again changes its keys and keeps its id. The subscription ends when the session that made it is signed out or replaced, and when the API key that made it, directly or in a session, is revoked, expires or gets another value.",
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
      links: { deletePushSubscription: { id: '$response.body#/id' } },
    },
    409: {
      description: 'Push is not set up, or the member has too many; see `code`',
      problem: ['push_not_configured', 'too_many_subscriptions'],
    },
  },
  async handle(dependencies, { actor, session, body }) {
    const { subscription, created } = await subscribeToPush(dependencies, actor, session?.hash ?? null, body)
    const presented = presentPushSubscription(subscription)
    if (!created) return { status: 200, body: presented }
    const location = `${COLLECTION.replace(':orgId', actor.organisationId)}/${presented.id}`
    return { status: 201, headers: { location }, body: presented }
  },
})

const deleteRoute: Route = {
  method: 'DELETE',
  path: `${COLLECTION}/:id`,
  operationId: 'deletePushSubscription',
  summary: "Remove one of the calling member's push subscriptions",
  access,
  responses: { 204: { description: 'Removed' } },
  async handle(dependencies, request) {
    await unsubscribeFromPush(dependencies, request.actor, param(request, 'id'))
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
  async handle(dependencies, { actor }) {
    await unsubscribeAllFromPush(dependencies, actor)
    return { status: 204 }
  },
}

export const pushSubscriptionRoutes: readonly Route[] = [
  listRoute,
  subscribeRoute,
  deleteRoute,
  deleteAllRoute,
]

import { EXAMPLE_IDS } from '../schemas/common.ts'
import { eventKeyErrors } from '../../catalogue/catalogue.ts'
import { findDelivery } from '../../db/queries/deliveries.ts'
import { discardDeliveries, discardDelivery } from '../../deliveries/retry/discard-deliveries.ts'
import { retryDelivery } from '../../deliveries/retry/retry-delivery.ts'
import { sendTestEvent } from '../../deliveries/retry/send-test-event.ts'
import { EVERY_DELIVERY } from '../../domain/delivery-filter.ts'
import { WEBHOOK_MANAGE } from '../../domain/permissions.ts'
import { notFound } from '../../problem-error.ts'
import { presentDelivery } from '../presenters/delivery.ts'
import { param, typedRoute, type Route } from '../route.ts'
import { DeliverySchema } from '../schemas/delivery.ts'
import {
  DiscardDeliveriesSchema,
  DiscardedSchema,
  MAX_SELECTION_BYTES,
  parseDeliverySelection,
  PAYLOAD_ERASED,
  RetryAcceptedSchema,
  selectionErrors,
  STATE_CONFLICT,
  TestWebhookSchema,
} from '../schemas/retry.ts'

const WEBHOOKS = '/api/orgs/:orgId/webhooks'
const ONE_DELIVERY = `${WEBHOOKS}/:id/deliveries/:deliveryId`
const OF_THIS_DELIVERY = { deliveryId: '$response.body#/deliveryId' }

const retryDeliveryRoute: Route = {
  method: 'POST',
  path: `${ONE_DELIVERY}/retry`,
  operationId: 'retryDelivery',
  summary: 'Retry one delivery now',
  description:
    'In any undelivered state, at once. A waiting or stopped delivery goes on with its schedule after that attempt; one that has used it up gets this one attempt. 409 `not_subscribed` while the webhook is not subscribed to its event key, `test_delivery` for a test event.',
  access: { kind: 'organisation', permission: WEBHOOK_MANAGE },
  responses: {
    202: {
      description: 'It is attempted at once',
      schema: RetryAcceptedSchema,
      links: { getDelivery: OF_THIS_DELIVERY },
    },
    409: {
      description: STATE_CONFLICT,
      problem: [
        'delivery_completed',
        'webhook_disabled',
        'webhook_held',
        'not_subscribed',
        'test_delivery',
        'delivery_changed',
      ],
    },
    410: { description: PAYLOAD_ERASED, problem: ['payload_erased'] },
  },
  async handle(dependencies, request) {
    const deliveryId = param(request, 'deliveryId')
    await retryDelivery(dependencies, request.actor, param(request, 'id'), deliveryId)
    return { status: 202, body: { deliveryId } }
  },
}

const discardDeliveryRoute: Route = {
  method: 'POST',
  path: `${ONE_DELIVERY}/discard`,
  operationId: 'discardDelivery',
  summary: 'Stop a waiting or permanently failed delivery for good',
  access: { kind: 'organisation', permission: WEBHOOK_MANAGE },
  responses: {
    200: { description: 'The delivery, stopped', schema: DeliverySchema },
    409: { description: STATE_CONFLICT, problem: ['not_discardable'] },
  },
  async handle(dependencies, request) {
    const { actor } = request
    const [webhookId, deliveryId] = [param(request, 'id'), param(request, 'deliveryId')]
    await discardDelivery(dependencies, actor, webhookId, deliveryId)
    const delivery = await findDelivery(dependencies.dataSource, actor.organisationId, webhookId, deliveryId)
    if (delivery === null) throw notFound('delivery')
    return { status: 200, body: presentDelivery(delivery, actor) }
  },
}

const discardFailedRoute: Route = {
  method: 'POST',
  path: `${WEBHOOKS}/:id/discard-failed`,
  operationId: 'discardFailed',
  summary: 'Stop every permanently failed delivery of a webhook for good',
  access: { kind: 'organisation', permission: WEBHOOK_MANAGE },
  responses: { 202: { description: 'How many', schema: DiscardedSchema } },
  async handle(dependencies, request) {
    const which = { states: ['failed'], selection: EVERY_DELIVERY } as const
    const discarded = await discardDeliveries(dependencies, request.actor, param(request, 'id'), which)
    return { status: 202, body: { discarded } }
  },
}

const discardRoute = typedRoute({
  method: 'POST',
  path: `${WEBHOOKS}/:id/discard`,
  operationId: 'discardDeliveries',
  summary: 'Stop the selected waiting and permanently failed deliveries of a webhook for good',
  description: 'With `deliveryIds` or with `filter`. Selected deliveries in other states are left alone.',
  access: { kind: 'organisation', permission: WEBHOOK_MANAGE },
  body: {
    schema: DiscardDeliveriesSchema,
    maxBytes: MAX_SELECTION_BYTES,
    rules: selectionErrors,
    example: { deliveryIds: [EXAMPLE_IDS.delivery] },
  },
  responses: { 202: { description: 'How many', schema: DiscardedSchema } },
  async handle(dependencies, request) {
    const which = { states: ['waiting', 'failed'], selection: parseDeliverySelection(request.body) } as const
    const discarded = await discardDeliveries(dependencies, request.actor, param(request, 'id'), which)
    return { status: 202, body: { discarded } }
  },
})

const sendTestEventRoute = typedRoute({
  method: 'POST',
  path: `${WEBHOOKS}/:id/test`,
  operationId: 'testWebhook',
  summary: 'Send a test event to this webhook only',
  description:
    "A `webhook:test`, or with `eventKey` the catalogue's example of a key that the webhook is subscribed to, which needs the key's own permission; `triggeredBy` has the member who sends it. It gets one attempt, belongs to no incident and is not in the event stream.",
  body: {
    schema: TestWebhookSchema,
    optional: true,
    maxBytes: MAX_SELECTION_BYTES,
    rules: ({ eventKey }, { catalogue }) => eventKeyErrors(catalogue, eventKey, '/eventKey'),
  },
  access: { kind: 'organisation', permission: WEBHOOK_MANAGE },
  responses: {
    202: {
      description: 'Committed',
      schema: RetryAcceptedSchema,
      links: { getDelivery: OF_THIS_DELIVERY },
    },
    409: { description: STATE_CONFLICT, problem: ['webhook_disabled', 'webhook_held', 'not_subscribed'] },
  },
  async handle(dependencies, request) {
    const { eventKey = null } = request.body
    const deliveryId = await sendTestEvent(dependencies, request.actor, param(request, 'id'), eventKey)
    return { status: 202, body: { deliveryId } }
  },
})

export const retryRoutes: readonly Route[] = [
  retryDeliveryRoute,
  discardDeliveryRoute,
  discardRoute,
  discardFailedRoute,
  sendTestEventRoute,
]

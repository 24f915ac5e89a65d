import { findDelivery } from '../../db/queries/deliveries.ts'
import { findRetryJob } from '../../db/queries/retry-jobs.ts'
import { WEBHOOK_MANAGE, WEBHOOK_READ } from '../../domain/permissions.ts'
import { notFound } from '../../errors.ts'
import {
  discardAllFailed,
  discardOne,
  requestRetryJob,
  retryDelivery,
  sendTestEvent,
} from '../delivery-commands.ts'
import { presentDelivery, presentRetryJob } from '../present-delivery.ts'
import { param, routeWithBody, type Route } from '../route.ts'
import { DeliverySchema } from '../schemas/delivery.ts'
import {
  DiscardedSchema,
  RetryAcceptedSchema,
  RetryDeliveriesSchema,
  RetryJobSchema,
} from '../schemas/retry.ts'

const WEBHOOKS = '/api/orgs/:orgId/webhooks'
const JOBS = `${WEBHOOKS}/retry-deliveries`
const ONE_DELIVERY = `${WEBHOOKS}/:id/deliveries/:deliveryId`
const MAX_BODY_BYTES = 4 * 1024
const CONFLICT = { description: 'Not possible in this state; see `code`' }

const retryDeliveriesRoute = routeWithBody({
  method: 'POST',
  path: JOBS,
  operationId: 'retryDeliveries',
  summary: 'Retry deliveries',
  description:
    'Background work: the answer is a job whose progress can be read. Deliveries whose event key their webhook is not subscribed to are neither counted nor attempted.',
  access: { kind: 'organisation', permission: WEBHOOK_MANAGE },
  body: { schema: RetryDeliveriesSchema, maxBytes: MAX_BODY_BYTES },
  idempotent: true,
  responses: {
    202: { description: 'The job', schema: RetryJobSchema, headers: { Location: 'Path of the job' } },
    409: { ...CONFLICT, problem: true },
  },
  async handle(dependencies, request) {
    const { caller, body, idempotency } = request
    const wanted = { mode: body.mode, webhookId: body.id ?? null }
    const job = await requestRetryJob(dependencies, request, wanted, idempotency)
    const location = `${JOBS.replace(':orgId', caller.organisationId)}/${job.id}`
    return { status: 202, headers: { location }, body: presentRetryJob(job) }
  },
})

const retryJobRoute: Route = {
  method: 'GET',
  path: `${JOBS}/:jobId`,
  operationId: 'getRetryJob',
  summary: 'See how far a retry job has come',
  access: { kind: 'organisation', permission: WEBHOOK_READ },
  responses: { 200: { description: 'The job', schema: RetryJobSchema } },
  async handle({ dataSource }, request) {
    const job = await findRetryJob(dataSource, request.caller.organisationId, param(request, 'jobId'))
    if (job === null) throw notFound('retry job')
    return { status: 200, body: presentRetryJob(job) }
  },
}

const retryOneRoute: Route = {
  method: 'POST',
  path: `${ONE_DELIVERY}/retry`,
  operationId: 'retryDelivery',
  summary: 'Retry one delivery now',
  description:
    'In any undelivered state, at once. A waiting or stopped delivery goes on with its schedule after that attempt; one that has used it up gets this one attempt. 409 `not_subscribed` while the webhook is not subscribed to its event key, `test_delivery` for a test event.',
  access: { kind: 'organisation', permission: WEBHOOK_MANAGE },
  responses: {
    202: { description: 'It is attempted at once', schema: RetryAcceptedSchema },
    409: { ...CONFLICT, problem: true },
  },
  async handle(dependencies, request) {
    const deliveryId = param(request, 'deliveryId')
    await retryDelivery(dependencies, request, param(request, 'id'), deliveryId)
    return { status: 202, body: { deliveryId } }
  },
}

const discardOneRoute: Route = {
  method: 'POST',
  path: `${ONE_DELIVERY}/discard`,
  operationId: 'discardDelivery',
  summary: 'Stop a waiting or permanently failed delivery for good',
  access: { kind: 'organisation', permission: WEBHOOK_MANAGE },
  responses: {
    200: { description: 'The delivery, stopped', schema: DeliverySchema },
    409: { ...CONFLICT, problem: true },
  },
  async handle(dependencies, request) {
    const { caller } = request
    const [webhookId, deliveryId] = [param(request, 'id'), param(request, 'deliveryId')]
    await discardOne(dependencies, request, webhookId, deliveryId)
    const delivery = await findDelivery(dependencies.dataSource, caller.organisationId, webhookId, deliveryId)
    if (delivery === null) throw notFound('delivery')
    return { status: 200, body: presentDelivery(delivery) }
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
    const discarded = await discardAllFailed(dependencies, request, param(request, 'id'))
    return { status: 202, body: { discarded } }
  },
}

const testRoute: Route = {
  method: 'POST',
  path: `${WEBHOOKS}/:id/test`,
  operationId: 'testWebhook',
  summary: 'Send a test event to this webhook only',
  access: { kind: 'organisation', permission: WEBHOOK_MANAGE },
  responses: {
    202: { description: 'Committed', schema: RetryAcceptedSchema },
    409: { ...CONFLICT, problem: true },
  },
  async handle(dependencies, request) {
    return {
      status: 202,
      body: { deliveryId: await sendTestEvent(dependencies, request, param(request, 'id')) },
    }
  },
}

export const retryRoutes: readonly Route[] = [
  retryDeliveriesRoute,
  retryJobRoute,
  retryOneRoute,
  discardOneRoute,
  discardFailedRoute,
  testRoute,
]

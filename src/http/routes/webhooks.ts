import { findWebhook, listWebhooks } from '../../db/queries/webhooks.ts'
import { WEBHOOK_MANAGE, WEBHOOK_READ } from '../../domain/permissions.ts'
import { notFound } from '../../errors.ts'
import { presentWebhook } from '../present.ts'
import { param, routeWithBody, type Route } from '../route.ts'
import {
  CreatedWebhookSchema,
  CreateWebhookSchema,
  SigningSecretSchema,
  UpdateWebhookSchema,
  WebhookListSchema,
  WebhookSchema,
} from '../schemas/webhook.ts'
import { webhookFieldErrors } from '../subscription.ts'
import { createWebhook, readSigningSecret, removeWebhook, updateWebhookFields } from '../webhook-commands.ts'

const COLLECTION = '/api/orgs/:orgId/webhooks'
const ONE = `${COLLECTION}/:id`
const MAX_BODY_BYTES = 64 * 1024

const rules: NonNullable<Route['body']>['rules'] = (fields, { urlPolicy }) =>
  webhookFieldErrors(fields, urlPolicy)

const listRoute: Route = {
  method: 'GET',
  path: COLLECTION,
  operationId: 'listWebhooks',
  summary: "List the organisation's webhooks",
  access: { kind: 'organisation', permission: WEBHOOK_READ },
  responses: { 200: { description: 'All webhooks, oldest first', schema: WebhookListSchema } },
  async handle({ dataSource }, { caller }) {
    const webhooks = await listWebhooks(dataSource, caller.organisationId)
    return { status: 200, body: { data: webhooks.map((webhook) => presentWebhook(webhook, caller)) } }
  },
}

const createRoute = routeWithBody({
  method: 'POST',
  path: COLLECTION,
  operationId: 'createWebhook',
  summary: 'Create a webhook',
  description:
    'The member needs the permission of every event key it subscribes to, and full access for `*`. The answer is the first of two places that show the signing secret.',
  access: { kind: 'organisation', permission: WEBHOOK_MANAGE },
  body: { schema: CreateWebhookSchema, maxBytes: MAX_BODY_BYTES, rules },
  idempotent: true,
  responses: {
    201: {
      description: 'The webhook with its signing secret',
      schema: CreatedWebhookSchema,
      headers: { Location: 'Path of the webhook' },
    },
    409: {
      description:
        '`too_many_webhooks`: the organisation has as many as it may have, 100 unless the operator says otherwise',
      problem: true,
    },
  },
  async handle(dependencies, request) {
    const { webhook, signingSecret } = await createWebhook(dependencies, request)
    const location = `${COLLECTION.replace(':orgId', request.caller.organisationId)}/${webhook.id}`
    return { status: 201, headers: { location }, body: { ...webhook, signingSecret } }
  },
})

const getRoute: Route = {
  method: 'GET',
  path: ONE,
  operationId: 'getWebhook',
  summary: 'Get one webhook',
  access: { kind: 'organisation', permission: WEBHOOK_READ },
  responses: { 200: { description: 'The webhook', schema: WebhookSchema } },
  async handle({ dataSource }, request) {
    const webhook = await findWebhook(dataSource, request.caller.organisationId, param(request, 'id'))
    if (webhook === null) throw notFound('webhook')
    return { status: 200, body: presentWebhook(webhook, request.caller) }
  },
}

const updateRoute = routeWithBody({
  method: 'PATCH',
  path: ONE,
  operationId: 'updateWebhook',
  summary: 'Update a webhook',
  description:
    'The member needs the permissions of the subscription as it is and as it will be. A change that only reduces what the webhook does (`enabled: false`, fewer event keys, or both) needs `webhook:manage` alone; a field that repeats its value changes nothing. Removing an event key, or narrowing `*`, stops the pending and waiting deliveries of the keys that are lost; they cannot be retried until the key is added again.',
  access: { kind: 'organisation', permission: WEBHOOK_MANAGE },
  body: { schema: UpdateWebhookSchema, maxBytes: MAX_BODY_BYTES, rules },
  responses: { 200: { description: 'The webhook as it is now', schema: WebhookSchema } },
  async handle(dependencies, request) {
    const webhook = await updateWebhookFields(dependencies, request, param(request, 'id'))
    return { status: 200, body: presentWebhook(webhook, request.caller) }
  },
})

const deleteRoute: Route = {
  method: 'DELETE',
  path: ONE,
  operationId: 'deleteWebhook',
  summary: 'Delete a webhook',
  access: { kind: 'organisation', permission: WEBHOOK_MANAGE },
  responses: { 204: { description: 'Deleted; its signing secret is gone' } },
  async handle(dependencies, request) {
    await removeWebhook(dependencies, request, param(request, 'id'))
    return { status: 204 }
  },
}

const signingSecretRoute: Route = {
  method: 'GET',
  path: `${ONE}/signing-secret`,
  operationId: 'getSigningSecret',
  summary: 'Reveal the signing secret',
  description:
    'Asks for the same rights as an update. The secret cannot be changed: delete the webhook and make a new one.',
  access: { kind: 'organisation', permission: WEBHOOK_MANAGE },
  responses: {
    200: {
      description: 'The signing secret',
      schema: SigningSecretSchema,
      headers: { 'Cache-Control': 'no-store' },
    },
  },
  async handle(dependencies, request) {
    const signingSecret = await readSigningSecret(dependencies, request, param(request, 'id'))
    return { status: 200, headers: { 'cache-control': 'no-store' }, body: { signingSecret } }
  },
}

export const webhookRoutes: readonly Route[] = [
  listRoute,
  createRoute,
  getRoute,
  updateRoute,
  deleteRoute,
  signingSecretRoute,
]

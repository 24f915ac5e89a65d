import { isDeepStrictEqual } from 'node:util'
import { listWebhooks, requireWebhook, type WebhookRow } from '../../db/queries/webhooks.ts'
import { WEBHOOK_MANAGE, WEBHOOK_READ } from '../../domain/permissions.ts'
import type { FieldError } from '../../problem-error.ts'
import { createWebhook, readSigningSecret, webhookFieldErrors } from '../../webhooks/create-webhook.ts'
import { deleteWebhook, updateWebhook } from '../../webhooks/change-webhook.ts'
import { presentWebhook } from '../presenters/webhook.ts'
import type { ApiDependencies } from '../api.ts'
import { param, typedRoute, type Route, type RouteRequest } from '../route.ts'
import {
  CreatedWebhookSchema,
  CreateWebhookSchema,
  SigningSecretSchema,
  UpdateWebhookSchema,
  WebhookListSchema,
  WebhookSchema,
} from '../schemas/webhook.ts'

/** What takes the id of a webhook. */
const OF_THIS_WEBHOOK = { id: '$response.body#/id' }

const COLLECTION = '/api/orgs/:orgId/webhooks'
const ONE = `${COLLECTION}/:id`
const MAX_BODY_BYTES = 64 * 1024

const listRoute: Route = {
  method: 'GET',
  path: COLLECTION,
  operationId: 'listWebhooks',
  summary: "List the organisation's webhooks",
  access: { kind: 'organisation', permission: WEBHOOK_READ },
  responses: { 200: { description: 'All webhooks, oldest first', schema: WebhookListSchema } },
  async handle({ dataSource, catalogue }, { actor }) {
    const webhooks = await listWebhooks(dataSource, actor.organisationId)
    const data = webhooks.map((webhook) => presentWebhook(webhook, actor, catalogue.permissionFor))
    return { status: 200, body: { data } }
  },
}

const createRoute = typedRoute({
  method: 'POST',
  path: COLLECTION,
  operationId: 'createWebhook',
  summary: 'Create a webhook',
  description:
    'The member needs the permission of every event key it subscribes to, and full access for `*`. The answer is the first of two places that show the signing secret.',
  access: { kind: 'organisation', permission: WEBHOOK_MANAGE },
  body: { schema: CreateWebhookSchema, maxBytes: MAX_BODY_BYTES, rules: webhookFieldErrors },
  idempotent: true,
  responses: {
    201: {
      description: 'The webhook with its signing secret',
      schema: CreatedWebhookSchema,
      headers: { Location: 'Path of the webhook' },
      links: {
        getWebhook: OF_THIS_WEBHOOK,
        updateWebhook: OF_THIS_WEBHOOK,
        deleteWebhook: OF_THIS_WEBHOOK,
        getSigningSecret: OF_THIS_WEBHOOK,
        testWebhook: OF_THIS_WEBHOOK,
        listDeliveries: OF_THIS_WEBHOOK,
        discardDeliveries: OF_THIS_WEBHOOK,
        discardFailed: OF_THIS_WEBHOOK,
        replayEvents: OF_THIS_WEBHOOK,
        listReplays: OF_THIS_WEBHOOK,
        listIncidents: OF_THIS_WEBHOOK,
        getActivity: OF_THIS_WEBHOOK,
      },
    },
    409: {
      description:
        '`too_many_webhooks`: the organisation has as many as it may have, 100 unless the operator says otherwise',
      problem: ['too_many_webhooks'],
    },
  },
  async handle(dependencies, { actor, body, idempotency }) {
    const { webhook, signingSecret } = await createWebhook(dependencies, actor, body, idempotency)
    const location = `${COLLECTION.replace(':orgId', actor.organisationId)}/${webhook.id}`
    const shown = presentWebhook(webhook, actor, dependencies.catalogue.permissionFor)
    return { status: 201, headers: { location }, body: { ...shown, signingSecret } }
  },
})

const getRoute: Route = {
  method: 'GET',
  path: ONE,
  operationId: 'getWebhook',
  summary: 'Get one webhook',
  access: { kind: 'organisation', permission: WEBHOOK_READ },
  responses: { 200: { description: 'The webhook', schema: WebhookSchema } },
  async handle(dependencies, request) {
    const webhook = await webhookOfPath(dependencies, request)
    return { status: 200, body: presentWebhook(webhook, request.actor, dependencies.catalogue.permissionFor) }
  },
}

const updateRoute = typedRoute({
  method: 'PATCH',
  path: ONE,
  operationId: 'updateWebhook',
  summary: 'Update a webhook',
  description:
    'The member needs the permissions of the subscription as it is and as it will be. A change that only reduces what the webhook does (`enabled: false`, fewer event keys, or both) needs `webhook:manage` alone; a field that repeats its value, as GET shows it to the member, changes nothing. `id`, `operatorHold`, `createdAt` and `updatedAt` are accepted with their present values only. Removing an event key, or narrowing `*`, stops the pending and waiting deliveries of the keys that are lost, as `enabled: false` stops all. When the webhook takes them again, those that were never attempted go on by themselves, and the others can be retried.',
  access: { kind: 'organisation', permission: WEBHOOK_MANAGE },
  body: {
    schema: UpdateWebhookSchema,
    maxBytes: MAX_BODY_BYTES,
    rules: updateErrors,
    example: { enabled: false },
  },
  responses: {
    200: { description: 'The webhook as it is now', schema: WebhookSchema },
    409: {
      description: '`webhook_held`: it was to be enabled, and the operator holds it',
      problem: ['webhook_held'],
    },
  },
  async handle(dependencies, request) {
    const { actor, body } = request
    const webhook = await updateWebhook(dependencies, actor, param(request, 'id'), body)
    return { status: 200, body: presentWebhook(webhook, actor, dependencies.catalogue.permissionFor) }
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
    await deleteWebhook(dependencies, request.actor, param(request, 'id'))
    return { status: 204 }
  },
}

const signingSecretRoute: Route = {
  method: 'GET',
  path: `${ONE}/signing-secret`,
  operationId: 'getSigningSecret',
  summary: 'Reveal the signing secret',
  description:
    'Asks for the same rights as an update. The audit trail records it. The secret cannot be changed: delete the webhook and make a new one.',
  access: { kind: 'organisation', permission: WEBHOOK_MANAGE },
  audited: true,
  responses: {
    200: {
      description: 'The signing secret',
      schema: SigningSecretSchema,
      headers: { 'Cache-Control': 'no-store' },
    },
  },
  async handle(dependencies, request) {
    const signingSecret = await readSigningSecret(dependencies, request.actor, param(request, 'id'))
    return { status: 200, isSecret: true, body: { signingSecret } }
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

/** Returns the webhook of the path. Throws 404 where the organisation has no such webhook. */
export function webhookOfPath(
  { dataSource }: Pick<ApiDependencies, 'dataSource'>,
  request: Pick<RouteRequest, 'actor' | 'params'>,
): Promise<WebhookRow> {
  return requireWebhook(dataSource, request.actor.organisationId, param(request, 'id'))
}

const READ_ONLY = ['id', 'operatorHold', 'createdAt', 'updatedAt']

/** Checks the fields that differ from what GET shows to the member: rules may have changed since the others were set. */
async function updateErrors(
  fields: Readonly<Record<string, unknown>>,
  dependencies: ApiDependencies,
  request: Pick<RouteRequest, 'actor' | 'params'>,
): Promise<FieldError[]> {
  const { actor } = request
  const webhook = await webhookOfPath(dependencies, request)
  const shown = new Map<string, unknown>(
    Object.entries(presentWebhook(webhook, actor, dependencies.catalogue.permissionFor)),
  )
  const differing = Object.entries(fields).filter(([name, value]) => {
    const given = name === 'id' && typeof value === 'string' ? value.toLowerCase() : value
    return !isDeepStrictEqual(given, shown.get(name))
  })
  const readOnly = differing.filter(([name]) => READ_ONLY.includes(name))
  return [
    ...readOnly.map(([name]) => ({
      pointer: `/${name}`,
      code: 'read_only',
      detail: 'cannot be changed: leave it out, or send its present value',
    })),
    ...webhookFieldErrors(Object.fromEntries(differing), dependencies),
  ]
}

import type { Static } from 'typebox'
import type { Caller } from '../db/queries/api-keys.ts'
import { runOnce } from '../db/queries/idempotency.ts'
import {
  deleteWebhook,
  findSealedSecret,
  findWebhook,
  insertWebhook,
  lockWebhook,
  updateWebhook,
  type WebhookRow,
} from '../db/queries/webhooks.ts'
import { invalidFields, notFound, type FieldError } from '../errors.ts'
import { newId } from '../ids.ts'
import { generateSigningSecret } from '../secret-box.ts'
import type { ApiDependencies } from './api.ts'
import { presentWebhook } from './present.ts'
import type { RouteRequest } from './route.ts'
import type { CreateWebhookSchema, UpdateWebhookSchema } from './schemas/webhook.ts'
import { requireSubscriptionRights, subscriptionErrors, urlOrErrors } from './subscription.ts'

/** Creates a webhook; a repeat with the same `Idempotency-Key` gets the same one, as long as it exists. */
export async function createWebhook(
  dependencies: ApiDependencies,
  request: RouteRequest<Static<typeof CreateWebhookSchema>>,
): Promise<{ webhook: ReturnType<typeof presentWebhook>; signingSecret: string }> {
  const { dataSource, secretBox, urlPolicy } = dependencies
  const { organisationId } = request.caller
  const { subscribedEventKeys, enabled } = request.body
  const { url, errors } = urlOrErrors(request.body.url, urlPolicy)
  refuse([...errors, ...subscriptionErrors(subscribedEventKeys)])
  requireSubscriptionRights(request.caller, subscribedEventKeys)

  const { answer } = await runOnce(dataSource, request.idempotency, async (db) => {
    const id = newId()
    const secret = secretBox.seal(id, generateSigningSecret())
    return presentWebhook(
      await insertWebhook(db, { id, organisationId, url, subscribedEventKeys, enabled, secret }),
    )
  })
  return { webhook: answer, signingSecret: await openSecret(dependencies, organisationId, answer.id) }
}

/**
 * Changes what the body names. The rights of the subscription before and after are both asked for: otherwise one
 * could turn somebody else's events towards one's own URL.
 */
export async function updateWebhookFields(
  { dataSource, urlPolicy }: ApiDependencies,
  request: RouteRequest<Static<typeof UpdateWebhookSchema>>,
  id: string,
): Promise<WebhookRow> {
  const { caller, body } = request
  return dataSource.transaction(async (manager) => {
    const before = await lockWebhook(manager, caller.organisationId, id)
    if (before === null) throw notFound('webhook')
    const { url, errors } =
      body.url === undefined ? { url: before.url, errors: [] } : urlOrErrors(body.url, urlPolicy)
    const subscribedEventKeys = body.subscribedEventKeys ?? before.subscribedEventKeys
    refuse([
      ...errors,
      ...(body.subscribedEventKeys === undefined ? [] : subscriptionErrors(subscribedEventKeys)),
    ])
    requireSubscriptionRights(caller, [...before.subscribedEventKeys, ...subscribedEventKeys])
    const enabled = body.enabled ?? before.enabled
    const after = await updateWebhook(manager, caller.organisationId, {
      id,
      url,
      subscribedEventKeys,
      enabled,
    })
    if (after === null) throw notFound('webhook')
    return after
  })
}

export async function removeWebhook(
  { dataSource }: ApiDependencies,
  caller: Caller,
  id: string,
): Promise<void> {
  if (!(await deleteWebhook(dataSource, caller.organisationId, id))) throw notFound('webhook')
}

/** The signing secret, for callers that may change the webhook. */
export async function readSigningSecret(
  dependencies: ApiDependencies,
  caller: Caller,
  id: string,
): Promise<string> {
  const webhook = await findWebhook(dependencies.dataSource, caller.organisationId, id)
  if (webhook === null) throw notFound('webhook')
  requireSubscriptionRights(caller, webhook.subscribedEventKeys)
  return openSecret(dependencies, caller.organisationId, id)
}

async function openSecret(
  dependencies: ApiDependencies,
  organisationId: string,
  id: string,
): Promise<string> {
  const sealed = await findSealedSecret(dependencies.dataSource, organisationId, id)
  if (sealed === null) throw notFound('webhook')
  return dependencies.secretBox.open(id, sealed)
}

function refuse(errors: FieldError[]): void {
  if (errors.length > 0) throw invalidFields(errors)
}

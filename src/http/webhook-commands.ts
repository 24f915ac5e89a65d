import type { Static } from 'typebox'
import type { Caller } from '../db/queries/api-keys.ts'
import { runOnce } from '../db/queries/idempotency.ts'
import { closeForGood } from '../db/queries/incidents.ts'
import { stopDeliveries } from '../db/queries/interventions.ts'
import {
  deleteWebhook,
  findSealedSecret,
  findWebhook,
  insertWebhook,
  lockWebhook,
  updateWebhook,
  type WebhookRow,
} from '../db/queries/webhooks.ts'
import { notFound } from '../errors.ts'
import { newId } from '../ids.ts'
import { resolveWithin } from '../incidents/change-incident.ts'
import { tellOfIncident } from '../incidents/tell.ts'
import { generateSigningSecret } from '../secret-box.ts'
import type { ApiDependencies } from './api.ts'
import { presentWebhook } from './present.ts'
import type { RouteRequest } from './route.ts'
import type { CreateWebhookSchema, UpdateWebhookSchema } from './schemas/webhook.ts'
import { canonicalUrl, requireSubscriptionRights } from './subscription.ts'

type PresentedWebhook = ReturnType<typeof presentWebhook>

/** Creates a webhook; a repeat with the same `Idempotency-Key` gets the same one, as long as it exists. */
export async function createWebhook(
  dependencies: ApiDependencies,
  request: RouteRequest<Static<typeof CreateWebhookSchema>>,
): Promise<{ webhook: PresentedWebhook; signingSecret: string }> {
  const { dataSource, secretBox, urlPolicy } = dependencies
  const { organisationId } = request.caller
  const { subscribedEventKeys, enabled } = request.body
  requireSubscriptionRights(request.caller, subscribedEventKeys)
  const url = canonicalUrl(request.body.url, urlPolicy)

  const { answer, replayed } = await runOnce(dataSource, request.idempotency, async (db) => {
    const id = newId()
    const secret = secretBox.seal(id, generateSigningSecret())
    return presentWebhook(
      await insertWebhook(db, { id, organisationId, url, subscribedEventKeys, enabled, secret }),
    )
  })
  // The webhook may have been widened since beyond what this caller may see.
  const signingSecret = replayed
    ? await readSigningSecret(dependencies, request.caller, answer.id)
    : await openSecret(dependencies, organisationId, answer.id)
  return { webhook: inOrder(answer), signingSecret }
}

/** A stored answer has lost the order of its fields (`jsonb`); a repeat is to get the very text of the first answer. */
function inOrder(webhook: PresentedWebhook): PresentedWebhook {
  const { id, url, subscribedEventKeys, enabled, createdAt, updatedAt } = webhook
  return { id, url, subscribedEventKeys, enabled, createdAt, updatedAt }
}

/**
 * Changes what the body names. The rights of the subscription before and after are both asked for: otherwise one
 * could turn somebody else's events towards one's own URL.
 */
export async function updateWebhookFields(
  dependencies: ApiDependencies,
  request: RouteRequest<Static<typeof UpdateWebhookSchema>>,
  id: string,
): Promise<WebhookRow> {
  const { dataSource, urlPolicy } = dependencies
  const { caller, body } = request
  const { result, tell } = await dataSource.transaction(async (manager) => {
    const before = await lockWebhook(manager, caller.organisationId, id)
    if (before === null) throw notFound('webhook')
    const subscribedEventKeys = body.subscribedEventKeys ?? before.subscribedEventKeys
    requireSubscriptionRights(caller, [...before.subscribedEventKeys, ...subscribedEventKeys])
    const url = body.url === undefined ? before.url : canonicalUrl(body.url, urlPolicy)
    const enabled = body.enabled ?? before.enabled
    const after = await updateWebhook(manager, caller.organisationId, {
      id,
      url,
      subscribedEventKeys,
      enabled,
    })
    if (after === null) throw notFound('webhook')
    if (!before.enabled || enabled) return { result: after, tell: null }
    const { tell: closed } = await resolveWithin(manager, id, () =>
      stopDeliveries(manager, caller.organisationId, id),
    )
    return { result: after, tell: closed }
  })
  void tellOfIncident(dependencies, tell)
  return result
}

/** Deletes a webhook; its waiting deliveries are stopped, and its incident ends whatever is left of it. */
export async function removeWebhook(
  dependencies: ApiDependencies,
  caller: Caller,
  id: string,
): Promise<void> {
  const closed = await dependencies.dataSource.transaction(async (manager) => {
    if (!(await deleteWebhook(manager, caller.organisationId, id))) throw notFound('webhook')
    const incident = await closeForGood(manager, id)
    await stopDeliveries(manager, caller.organisationId, id)
    return incident
  })
  void tellOfIncident(dependencies, closed)
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

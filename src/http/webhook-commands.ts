import type { Static } from 'typebox'
import type { Db } from '../db/db.ts'
import { transactOnce } from '../db/queries/idempotency.ts'
import { closeForGood, queueForIncident, resumeIncident } from '../db/queries/incidents.ts'
import { stopDeliveries, stopUncoveredDeliveries } from '../db/queries/interventions.ts'
import { lockOrganisation } from '../db/queries/organisations.ts'
import {
  countWebhooks,
  deleteWebhook,
  findSealedSecret,
  findWebhook,
  insertWebhook,
  updateWebhook,
  type WebhookRow,
} from '../db/queries/webhooks.ts'
import { isCoveredBy } from '../domain/subscription.ts'
import { transactOnWebhook } from '../incidents/webhook-locks.ts'
import { notFound, ProblemError } from '../errors.ts'
import { newId } from '../ids.ts'
import { lockWebhookInLine } from '../incidents/change-incident.ts'
import { tellOfIncident } from '../incidents/tell.ts'
import { generateSigningSecret } from '../secret-box.ts'
import type { ApiDependencies } from './api.ts'
import { audit, urlForAudit } from './audit.ts'
import { presentWebhook } from './present.ts'
import type { Actor, RouteRequest } from './route.ts'
import type { CreateWebhookSchema, UpdateWebhookSchema } from './schemas/webhook.ts'
import { canonicalUrl, isReduction, requireSubscriptionRights } from './subscription.ts'

type PresentedWebhook = ReturnType<typeof presentWebhook>

/** Creates a webhook; a repeat with the same `Idempotency-Key` gets the same one, as long as it exists. */
export async function createWebhook(
  dependencies: ApiDependencies,
  request: RouteRequest<Static<typeof CreateWebhookSchema>>,
): Promise<{ webhook: PresentedWebhook; signingSecret: string }> {
  const { dataSource, secretBox, urlPolicy, webhooksPerOrganisation } = dependencies
  const { organisationId } = request.caller
  const { subscribedEventKeys, enabled } = request.body
  requireSubscriptionRights(request.caller, subscribedEventKeys)
  const url = canonicalUrl(request.body.url, urlPolicy)

  const { answer, replayed } = await transactOnce(dataSource, request.idempotency, async (db) => {
    await requireRoom(db, organisationId, webhooksPerOrganisation)
    const id = newId()
    const secret = secretBox.seal(id, generateSigningSecret())
    const details = { url: urlForAudit(url), subscribedEventKeys, enabled }
    await audit(db, request, { action: 'webhook.created', webhookId: id, details })
    return presentWebhook(
      await insertWebhook(db, { id, organisationId, url, subscribedEventKeys, enabled, secret }),
      request.caller,
    )
  })
  // The webhook may have been widened since beyond what this caller may see.
  const signingSecret = replayed
    ? await readSigningSecret(dependencies, request, answer.id)
    : await openSecret(dependencies, organisationId, answer.id)
  return { webhook: inOrder(answer), signingSecret }
}

/** Of webhooks made at the same time each counts those before it; the lock holds until the transaction ends. */
async function requireRoom(db: Db, organisationId: string, max: number): Promise<void> {
  await lockOrganisation(db, organisationId)
  if ((await countWebhooks(db, organisationId)) < max) return
  throw new ProblemError('too_many_webhooks', {
    detail: `An organisation may have at most ${max} webhooks. Delete one first.`,
  })
}

/** A stored answer has lost the order of its fields (`jsonb`); a repeat is to get the very text of the first answer. */
function inOrder(webhook: PresentedWebhook): PresentedWebhook {
  const { id, url, subscribedEventKeys, enabled, createdAt, updatedAt } = webhook
  return { id, url, subscribedEventKeys, enabled, createdAt, updatedAt }
}

/**
 * Changes what the body names. It takes the permissions of the subscription before and after: otherwise a member could
 * direct events that they must not see to a URL of their own. A change that only reduces what the webhook does takes
 * none of them. A subscription that becomes narrower stops what waits under the keys that it loses.
 */
export async function updateWebhookFields(
  dependencies: ApiDependencies,
  request: RouteRequest<Static<typeof UpdateWebhookSchema>>,
  id: string,
): Promise<WebhookRow> {
  const { urlPolicy, metrics } = dependencies
  const { caller, body } = request
  let stopped = 0
  const { result, tell } = await transactOnWebhook(dependencies, id, async (manager) => {
    const before = await lockWebhookInLine(manager, caller.organisationId, id)
    if (before === null) throw notFound('webhook')
    const subscribedEventKeys = body.subscribedEventKeys ?? before.subscribedEventKeys
    const url = body.url === undefined ? before.url : canonicalUrl(body.url, urlPolicy)
    const enabled = body.enabled ?? before.enabled
    const wanted = { id, url, subscribedEventKeys, enabled }
    if (!isReduction(before, wanted))
      requireSubscriptionRights(caller, [...before.subscribedEventKeys, ...subscribedEventKeys])
    const after = await updateWebhook(manager, caller.organisationId, wanted)
    if (after === null) throw notFound('webhook')
    await audit(manager, request, {
      action: 'webhook.updated',
      webhookId: id,
      details: changesForAudit(before, after),
    })
    if (before.enabled && !enabled) {
      // The open incident stays as it is: its notifications are held until the webhook is enabled again.
      stopped = await stopDeliveries(manager, caller.organisationId, id, 'webhook_disabled')
      return { result: after, tell: null }
    }
    const resumed = before.enabled === enabled ? null : await resumeIncident(manager, id)
    if (!isCoveredBy(subscribedEventKeys, before.subscribedEventKeys))
      stopped = await stopUncoveredDeliveries(manager, caller.organisationId, id)
    return { result: after, tell: resumed }
  })
  dependencies.webhooks.invalidate(id)
  metrics.deliveriesStopped(stopped)
  void tellOfIncident(dependencies, tell)
  return result
}

/** What a change changed, from what to what. */
function changesForAudit(before: WebhookRow, after: WebhookRow): Record<string, unknown> {
  const shown = ({ url, subscribedEventKeys, enabled }: WebhookRow) => ({
    url: urlForAudit(url),
    subscribedEventKeys,
    enabled,
  })
  const [from, to] = [shown(before), shown(after)]
  // What was shortened may look the same before and after.
  return { from, to, urlChanged: before.url !== after.url }
}

/** Deletes a webhook; its waiting deliveries are stopped, and its incident ends whatever is left of it. */
export async function removeWebhook(dependencies: ApiDependencies, actor: Actor, id: string): Promise<void> {
  const { organisationId } = actor.caller
  const { closed, stopped } = await transactOnWebhook(dependencies, id, async (manager) => {
    await queueForIncident(manager, id, 'exclusive')
    if (!(await deleteWebhook(manager, organisationId, id))) throw notFound('webhook')
    await audit(manager, actor, { action: 'webhook.deleted', webhookId: id })
    const incident = await closeForGood(manager, id)
    return { closed: incident, stopped: await stopDeliveries(manager, organisationId, id, 'webhook_deleted') }
  })
  dependencies.webhooks.invalidate(id)
  dependencies.metrics.deliveriesStopped(stopped)
  void tellOfIncident(dependencies, closed)
}

/** The signing secret, for callers that may change the webhook. No look at it goes unnoted. */
export async function readSigningSecret(
  dependencies: ApiDependencies,
  actor: Actor,
  id: string,
): Promise<string> {
  const { dataSource } = dependencies
  const { organisationId } = actor.caller
  const webhook = await findWebhook(dataSource, organisationId, id)
  if (webhook === null) throw notFound('webhook')
  requireSubscriptionRights(actor.caller, webhook.subscribedEventKeys)
  const secret = await openSecret(dependencies, organisationId, id)
  await audit(dataSource, actor, { action: 'webhook.secret_read', webhookId: id })
  return secret
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

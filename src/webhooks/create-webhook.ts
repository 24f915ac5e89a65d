import type { DataSource } from 'typeorm'
import type { Actor } from '../domain/actor.ts'
import { MAX_EVENT_KEY_LENGTH, WILDCARD } from '../domain/permissions.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import type { Db } from '../db/connection/db.ts'
import { recordAudit } from '../db/queries/audit.ts'
import { transactOnce, type IdempotentRequest } from '../db/queries/idempotency.ts'
import { requireOrganisation } from '../accounts/organisations.ts'
import {
  countWebhooks,
  findSealedSecret,
  findWebhook,
  insertWebhook,
  type WebhookRow,
} from '../db/queries/webhooks.ts'
import { notFound, ProblemError, requireSubscriptionRights, type FieldError } from '../problem-error.ts'
import { newId } from '../ids.ts'
import { canonicalUrl, urlErrors, type UrlPolicy } from '../outbound/url-rules.ts'
import { generateSigningSecret, type SecretBox } from '../secret-box.ts'
import { urlForAudit } from '../domain/webhook-name.ts'

type Dependencies = {
  dataSource: DataSource
  catalogue: Pick<Catalogue, 'permissionFor'>
  secretBox: SecretBox
  urlPolicy: UrlPolicy
  webhooksPerOrganisation: number
}

type NewWebhook = Pick<WebhookRow, 'url' | 'subscribedEventKeys' | 'enabled'> &
  Partial<Pick<WebhookRow, 'description'>>

/**
 * Creates a webhook. A repeat with the same `Idempotency-Key` returns the webhook as it was created, with its signing
 * secret, and throws 404 once it is deleted. Throws 409 where the organisation has as many as it may have.
 */
export async function createWebhook(
  dependencies: Dependencies,
  actor: Actor,
  fields: NewWebhook,
  idempotency: IdempotentRequest | null,
): Promise<{ webhook: WebhookRow; signingSecret: string }> {
  const { dataSource, catalogue, secretBox, urlPolicy, webhooksPerOrganisation } = dependencies
  const { organisationId } = actor
  const { subscribedEventKeys, enabled, description = '' } = fields
  requireSubscriptionRights(catalogue, actor, subscribedEventKeys)
  const url = canonicalUrl(fields.url, urlPolicy)

  let signingSecret = generateSigningSecret()
  const { answer, replayed } = await transactOnce(dataSource, idempotency, async (db) => {
    await requireRoom(db, organisationId, webhooksPerOrganisation)
    const id = newId()
    const secret = secretBox.seal(id, signingSecret)
    const details = { url: urlForAudit(url), description, subscribedEventKeys, enabled }
    await recordAudit(db, actor, { action: 'webhook.created', webhookId: id, details })
    return insertWebhook(db, { id, organisationId, url, description, subscribedEventKeys, enabled, secret })
  })
  // On a repeat the webhook may have been widened since, beyond what this member may see.
  if (replayed) signingSecret = await readSigningSecret(dependencies, actor, answer.id)
  return { webhook: withDates(answer), signingSecret }
}

/** Throws 409 at the limit, 404 while the organisation is being erased. The lock lasts until the transaction ends, so concurrent requests count one by one. */
async function requireRoom(db: Db, organisationId: string, max: number): Promise<void> {
  await requireOrganisation(db, organisationId)
  if ((await countWebhooks(db, organisationId)) < max) return
  throw new ProblemError('too_many_webhooks', {
    detail: `An organisation may have at most ${max} webhooks. Delete one first.`,
  })
}

/** A webhook as it was created is not held; an answer that the version before has stored does not say so. */
const NO_HOLD = { heldAt: null, holdReason: null }

/** Restores the dates of a stored answer, which is JSON and has them as text. */
function withDates(webhook: WebhookRow): WebhookRow {
  const { createdAt, updatedAt } = webhook
  return { ...webhook, createdAt: new Date(createdAt), updatedAt: new Date(updatedAt), ...NO_HOLD }
}

/** Returns the signing secret to a member that may change the webhook, and records the access in the audit trail. */
export async function readSigningSecret(
  { dataSource, catalogue, secretBox }: Pick<Dependencies, 'dataSource' | 'catalogue' | 'secretBox'>,
  actor: Actor,
  id: string,
): Promise<string> {
  const webhook = await findWebhook(dataSource, actor.organisationId, id)
  const sealed = await findSealedSecret(dataSource, actor.organisationId, id)
  if (webhook === null || sealed === null) throw notFound('webhook')
  requireSubscriptionRights(catalogue, actor, webhook.subscribedEventKeys)
  const secret = secretBox.open(id, sealed)
  await recordAudit(dataSource, actor, { action: 'webhook.secret_read', webhookId: id })
  return secret
}

/** Checks rules of a webhook's fields that a schema cannot express. Values of the wrong type are left to the schema. */
export function webhookFieldErrors(
  fields: { readonly url?: unknown; readonly subscribedEventKeys?: unknown },
  { urlPolicy, catalogue }: { urlPolicy: UrlPolicy; catalogue: Catalogue },
): FieldError[] {
  const { url, subscribedEventKeys } = fields
  return [
    ...(typeof url === 'string' ? urlErrors('/url', url, urlPolicy) : []),
    ...(Array.isArray(subscribedEventKeys) ? subscriptionErrors(subscribedEventKeys, catalogue) : []),
  ]
}

function subscriptionErrors(eventKeys: readonly unknown[], catalogue: Catalogue): FieldError[] {
  return eventKeys.flatMap((key, index) => {
    if (typeof key !== 'string') return []
    const pointer = `/subscribedEventKeys/${index}`
    const errors = selectedKeyErrors(key, eventKeys.length, pointer, catalogue)
    if (errors.length > 0 || key === WILDCARD || catalogue.isSubscribable(key)) return errors
    return [{ pointer, code: 'not_subscribable', detail: 'This event key cannot be subscribed to by name.' }]
  })
}

/** Checks one of the `count` event keys of a webhook or a stream. The answer repeats it: the catalogue may have lost it. */
export function selectedKeyErrors(
  key: string,
  count: number,
  pointer: string,
  { find }: Pick<Catalogue, 'find'>,
): FieldError[] {
  if (key === WILDCARD) {
    if (count === 1) return []
    return [{ pointer, code: 'wildcard_not_alone', detail: '"*" means every event and must stand alone.' }]
  }
  if (find(key) !== undefined) return []
  const shown = JSON.stringify(key.slice(0, MAX_EVENT_KEY_LENGTH))
  return [{ pointer, code: 'unknown_event_key', detail: `There is no event key ${shown}.` }]
}

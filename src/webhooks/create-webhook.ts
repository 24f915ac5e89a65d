import type { DataSource } from 'typeorm'
import type { Actor } from '../domain/actor.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import type { Db } from '../db/connection/db.ts'
import { recordAudit } from '../db/queries/audit.ts'
import { transactOnce, type IdempotentRequest } from '../db/queries/idempotency.ts'
import { requireOrganisation } from '../accounts/organisations.ts'
import { countWebhooks, insertWebhook, type WebhookRow } from '../db/queries/webhooks.ts'
import { ProblemError, requireSubscriptionRights } from '../problem-error.ts'
import { newId } from '../ids.ts'
import { canonicalUrl, type UrlPolicy } from '../outbound/url-rules.ts'
import { generateSigningSecret, type SecretBox } from '../secret-box.ts'
import { openSigningSecret, readSigningSecret } from './signing-secret.ts'
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

  const { answer, replayed } = await transactOnce(dataSource, idempotency, async (db) => {
    await requireRoom(db, organisationId, webhooksPerOrganisation)
    const id = newId()
    const secret = secretBox.seal(id, generateSigningSecret())
    const details = { url: urlForAudit(url), description, subscribedEventKeys, enabled }
    await recordAudit(db, actor, { action: 'webhook.created', webhookId: id, details })
    return insertWebhook(db, { id, organisationId, url, description, subscribedEventKeys, enabled, secret })
  })
  // On a repeat the webhook may have been widened since, beyond what this member may see.
  const signingSecret = replayed
    ? await readSigningSecret(dependencies, actor, answer.id)
    : await openSigningSecret(dependencies, organisationId, answer.id)
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

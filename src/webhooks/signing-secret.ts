import type { DataSource } from 'typeorm'
import type { Actor } from '../domain/actor.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import { recordAudit } from '../db/queries/audit.ts'
import { findSealedSecret, findWebhook } from '../db/queries/webhooks.ts'
import { notFound, requireSubscriptionRights } from '../problem-error.ts'
import type { SecretBox } from '../secret-box.ts'

type Dependencies = { dataSource: DataSource; secretBox: Pick<SecretBox, 'open'> }
type ReadDependencies = Dependencies & { catalogue: Pick<Catalogue, 'permissionFor'> }

/** Returns the signing secret to a member that may change the webhook, and records the access in the audit trail. */
export async function readSigningSecret(
  dependencies: ReadDependencies,
  actor: Actor,
  id: string,
): Promise<string> {
  const { dataSource } = dependencies
  const webhook = await findWebhook(dataSource, actor.organisationId, id)
  if (webhook === null) throw notFound('webhook')
  requireSubscriptionRights(dependencies.catalogue, actor, webhook.subscribedEventKeys)
  const secret = await openSigningSecret(dependencies, actor.organisationId, id)
  await recordAudit(dataSource, actor, { action: 'webhook.secret_read', webhookId: id })
  return secret
}

/** Decrypts the signing secret. Checks no rights. Throws 404 when the webhook is deleted. */
export async function openSigningSecret(
  { dataSource, secretBox }: Dependencies,
  organisationId: string,
  id: string,
): Promise<string> {
  const sealed = await findSealedSecret(dataSource, organisationId, id)
  if (sealed === null) throw notFound('webhook')
  return secretBox.open(id, sealed)
}

import type { DataSource } from 'typeorm'
import type { Actor } from '../../domain/actor.ts'
import type { Catalogue } from '../../catalogue/catalogue.ts'
import { recordAudit } from '../../db/queries/audit.ts'
import { findDelivery } from '../../db/queries/deliveries.ts'
import { findSealedSecret, findWebhook } from '../../db/queries/webhooks.ts'
import { notFound, payloadErased, requireSubscriptionRights } from '../../problem-error.ts'
import { signedHeaders } from '../../outbound/signed-headers.ts'
import type { SecretBox } from '../../secret-box.ts'

type Dependencies = {
  dataSource: DataSource
  catalogue: Pick<Catalogue, 'permissionFor'>
  secretBox: Pick<SecretBox, 'open'>
}

/** The POST of a delivery to its webhook as it is now. */
export type DeliveryRequest = { url: string; headers: Record<string, string>; body: string }

/**
 * Returns the signed request of a delivery to a member that may change the webhook and may read the event, and records
 * the access in the audit trail: who has it can send it to the endpoint.
 */
export async function readDeliveryRequest(
  { dataSource, catalogue, secretBox }: Dependencies,
  actor: Actor,
  webhookId: string,
  deliveryId: string,
): Promise<DeliveryRequest> {
  const { organisationId } = actor
  const webhook = await findWebhook(dataSource, organisationId, webhookId)
  const delivery = await findDelivery(dataSource, organisationId, webhookId, deliveryId)
  const sealed = await findSealedSecret(dataSource, organisationId, webhookId)
  if (webhook === null || delivery === null || sealed === null) throw notFound('delivery')
  requireSubscriptionRights(catalogue, actor, [...webhook.subscribedEventKeys, delivery.eventKey])
  if (delivery.body === null) throw payloadErased()
  const headers = signedHeaders(deliveryId, secretBox.open(webhookId, sealed), delivery.body)
  await recordAudit(dataSource, actor, { action: 'delivery.request_read', webhookId, deliveryId })
  return { url: webhook.url, headers, body: delivery.body.toString('utf8') }
}

import type { WebhookRow } from '../../db/queries/webhooks.ts'
import { mayChangeWebhook, type Grants, type PermissionFor } from '../../domain/permissions.ts'
import { shortenUrl } from '../../domain/webhook-name.ts'

/** Presents a webhook to `reader`. A secret has no presenter. */
export function presentWebhook(webhook: WebhookRow, reader: Grants, permissionFor: PermissionFor) {
  const { id, url, description, subscribedEventKeys, enabled, createdAt, updatedAt } = webhook
  return {
    id,
    url: mayChangeWebhook(reader, subscribedEventKeys, permissionFor) ? url : shortenUrl(url),
    description,
    subscribedEventKeys,
    enabled,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  }
}

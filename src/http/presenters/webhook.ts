import type { WebhookRow } from '../../db/queries/webhooks.ts'
import type { Grants, PermissionFor } from '../../domain/permissions.ts'
import { urlFor } from '../../domain/webhook-name.ts'

/** Presents a webhook to `reader`. A secret has no presenter. */
export function presentWebhook(webhook: WebhookRow, reader: Grants, permissionFor: PermissionFor) {
  const { id, description, subscribedEventKeys, enabled, createdAt, updatedAt } = webhook
  return {
    id,
    url: urlFor(reader, webhook, permissionFor),
    description,
    subscribedEventKeys,
    enabled,
    operatorHold: presentHold(webhook),
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  }
}

/** Presents the operator's hold on a webhook; null without one. */
export function presentHold({ heldAt, holdReason }: Pick<WebhookRow, 'heldAt' | 'holdReason'>) {
  return heldAt === null ? null : { since: heldAt.toISOString(), reason: holdReason ?? '' }
}

import type { Db } from '../../db/connection/db.ts'
import { findDelivery } from '../../db/queries/deliveries.ts'
import { findWebhook } from '../../db/queries/webhooks.ts'
import { conflict, notFound, type ProblemError } from '../../errors.ts'
import { parseUuid } from '../../ids.ts'

/** Throws 404 when the organisation has no such webhook, and 409 when it is disabled. */
export async function requireEnabled(db: Db, organisationId: string, webhookId: string): Promise<void> {
  const webhook = parseUuid(webhookId) === null ? null : await findWebhook(db, organisationId, webhookId)
  if (webhook === null) throw notFound('webhook')
  if (!webhook.enabled) throw webhookDisabled()
}

/** Throws 404 when the webhook has no such delivery. */
export async function requireDelivery(
  db: Db,
  organisationId: string,
  webhookId: string,
  deliveryId: string,
): Promise<void> {
  if ((await findDelivery(db, organisationId, webhookId, deliveryId)) === null) throw notFound('delivery')
}

export function webhookDisabled(): ProblemError {
  return conflict('webhook_disabled', 'The webhook is disabled. Enable it first.')
}

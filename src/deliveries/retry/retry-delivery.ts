import type { DataSource } from 'typeorm'
import type { Actor } from '../../domain/actor.ts'
import { isSubscribedTo } from '../../domain/permissions.ts'
import { recordAudit } from '../../db/queries/audit.ts'
import { findDelivery } from '../../db/queries/deliveries.ts'
import { findWebhook, requireWebhook } from '../../db/queries/webhooks.ts'
import { DELIVERY_STATES } from '../../domain/delivery-state.ts'
import { conflict, notFound, payloadErased, webhookDisabled, type ProblemError } from '../../problem-error.ts'
import { transactOnWebhook, type CommandDependencies } from '../../webhooks/webhook-locks.ts'
import type { Logger } from '../../observability/logger.ts'
import type { DeliveryWorkflows } from '../../temporal/workflows.ts'
import { requestRetries, type RequestedRetry } from '../protocol/change-deliveries.ts'
import { callForEach } from '../../temporal/calls.ts'
import type { Db } from '../../db/connection/db.ts'
import { parseUuid } from '../../ids.ts'

type Dependencies = CommandDependencies & {
  workflows: Pick<DeliveryWorkflows, 'wake'>
  logger: Logger
}

/** All but completed. */
const RETRIED_STATES = DELIVERY_STATES.filter((state) => state !== 'completed')

/**
 * Retries one delivery at once, in any undelivered state. Throws 409 with the reason where that is not possible,
 * 410 where its payload is erased.
 */
export async function retryDelivery(
  dependencies: Dependencies,
  actor: Actor,
  webhookId: string,
  deliveryId: string,
): Promise<void> {
  const { dataSource } = dependencies
  const { organisationId } = actor
  await requireDelivery(dataSource, organisationId, webhookId, deliveryId)
  const requested = await transactOnWebhook(dependencies, webhookId, async (manager) => {
    const of = { organisationId, webhookId, ids: [deliveryId], states: RETRIED_STATES }
    const [delivery = null] = await requestRetries(manager, of)
    if (delivery !== null)
      await recordAudit(manager, actor, { action: 'delivery.retried', webhookId, deliveryId })
    return delivery
  })
  if (requested === null) throw await refusalOf(dataSource, organisationId, webhookId, deliveryId)
  // Not awaited: the request is on the row, and the sweeper wakes what this process fails to wake.
  void wakeWorkflows(dependencies, { organisationId, webhookId }, [requested])
}

/** Returns why a delivery cannot be retried. Reads again: the webhook may have changed since the first checks. */
async function refusalOf(
  dataSource: DataSource,
  organisationId: string,
  webhookId: string,
  deliveryId: string,
): Promise<ProblemError> {
  const webhook = await findWebhook(dataSource, organisationId, webhookId)
  const delivery = await findDelivery(dataSource, organisationId, webhookId, deliveryId)
  if (webhook === null || delivery === null) return notFound('delivery')
  if (delivery.erasedAt !== null) return payloadErased()
  if (delivery.state === 'completed')
    return conflict('delivery_completed', 'The delivery is completed; there is nothing to retry.')
  if (delivery.isTest)
    return conflict('test_delivery', 'A test event gets one attempt. Send another one instead.')
  if (!webhook.enabled) return webhookDisabled(webhook)
  if (!isSubscribedTo(webhook.subscribedEventKeys, delivery.eventKey))
    return conflict('not_subscribed', `The webhook is not subscribed to ${delivery.eventKey} any more.`)
  return conflict('delivery_changed', 'The delivery changed at the same time. Try again.')
}

const MAX_CONCURRENT_WAKES = 10

/**
 * Wakes the workflows of deliveries with a requested retry. Never rejects: the sweeper wakes those that are left a few
 * seconds later.
 */
export async function wakeWorkflows(
  { workflows, logger }: { workflows: Pick<DeliveryWorkflows, 'wake'>; logger: Logger },
  webhook: { organisationId: string; webhookId: string },
  requested: readonly RequestedRetry[],
): Promise<void> {
  const retries = requested.filter(({ state }) => state === 'waiting')
  await callForEach(retries, (delivery) => workflows.wake({ ...webhook, ...delivery }, delivery.attempts), {
    concurrency: MAX_CONCURRENT_WAKES,
    onFailed: ({ deliveryId }, error) => logger.warn({ event: 'retry.wake_failed', deliveryId, err: error }),
  })
}

/** Throws 404 when the organisation has no such webhook, and 409 when it is disabled. */
export async function requireEnabled(db: Db, organisationId: string, webhookId: string): Promise<void> {
  if (parseUuid(webhookId) === null) throw notFound('webhook')
  const webhook = await requireWebhook(db, organisationId, webhookId)
  if (!webhook.enabled) throw webhookDisabled(webhook)
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

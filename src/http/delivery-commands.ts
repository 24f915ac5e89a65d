import type { Db } from '../db/db.ts'
import { findDelivery } from '../db/queries/deliveries.ts'
import { insertTestEvent } from '../db/queries/events.ts'
import { transactOnce, type IdempotentRequest } from '../db/queries/idempotency.ts'
import { askForRetry, discardDelivery, discardFailed } from '../db/queries/interventions.ts'
import { insertRetryJob, type RetryJobRow } from '../db/queries/retry-jobs.ts'
import { findWebhook } from '../db/queries/webhooks.ts'
import { wakeWorkflows } from '../deliveries/retry-jobs/wake-workflows.ts'
import { TEST_EVENT_KEY } from '../domain/permissions.ts'
import type { RetryMode } from '../domain/retry-mode.ts'
import { coversEventKey } from '../domain/subscription.ts'
import { transactOnWebhook } from '../incidents/webhook-locks.ts'
import { conflict, notFound, type ProblemError } from '../errors.ts'
import { testEnvelope } from '../events/test-event.ts'
import { newId } from '../ids.ts'
import { lockWebhookInLine, resolve, resolveWithin } from '../incidents/change-incident.ts'
import { tellOfIncident } from '../incidents/tell.ts'
import type { ApiDependencies } from './api.ts'
import { audit } from './audit.ts'
import { isUuid } from './ids.ts'
import type { Actor } from './route.ts'

/** Makes a retry job and has it started; the sweep starts it where this process does not come to it. */
export async function requestRetryJob(
  dependencies: ApiDependencies,
  actor: Actor,
  wanted: { mode: RetryMode; webhookId: string | null },
  idempotency: IdempotentRequest | null,
): Promise<RetryJobRow> {
  const { dataSource, retryWorkflows, logger } = dependencies
  const { organisationId, memberId } = actor.caller
  const { mode, webhookId } = wanted
  const make = async (db: Db): Promise<RetryJobRow> => {
    if (webhookId !== null) await requireEnabled(db, organisationId, webhookId)
    const job = await insertRetryJob(db, {
      id: newId(),
      organisationId,
      webhookId,
      mode,
      requestedBy: memberId,
    })
    const details = { jobId: job.id, mode, total: job.total }
    await audit(db, actor, { action: 'deliveries.retried', webhookId, details })
    return job
  }
  const { answer, replayed } = await transactOnce(dataSource, idempotency, make)
  if (!replayed && answer.state === 'running') {
    // The answer does not wait for the engine: the job is committed, and the sweep looks after it.
    retryWorkflows
      .start({ organisationId, jobId: answer.id })
      .catch((error: unknown) =>
        logger.warn(
          { event: 'retry_job.not_started', jobId: answer.id, err: error },
          'retry_job.not_started',
        ),
      )
  }
  return answer
}

/** Has one delivery attempted at once, whatever undelivered state it is in. */
export async function retryDelivery(
  dependencies: ApiDependencies,
  actor: Actor,
  webhookId: string,
  deliveryId: string,
): Promise<void> {
  const { dataSource } = dependencies
  const { organisationId } = actor.caller
  await requireEnabled(dataSource, organisationId, webhookId)
  await requireDelivery(dependencies, organisationId, webhookId, deliveryId)
  const asked = await transactOnWebhook(dependencies, webhookId, async (manager) => {
    const noted = await askForRetry(manager, organisationId, webhookId, deliveryId)
    if (noted !== null) await audit(manager, actor, { action: 'delivery.retried', webhookId, deliveryId })
    return noted
  })
  if (asked === null) throw await refusalOfRetry(dependencies, organisationId, webhookId, deliveryId)
  // The answer does not wait for the engine: the wish stands on the row, and the sweep repeats what was not told.
  void wakeWorkflows(dependencies, { organisationId, webhookId }, [asked])
}

/** Why a delivery cannot be retried; read after the refusal, because the webhook may have changed since the checks. */
async function refusalOfRetry(
  { dataSource }: ApiDependencies,
  organisationId: string,
  webhookId: string,
  deliveryId: string,
): Promise<ProblemError> {
  const webhook = await findWebhook(dataSource, organisationId, webhookId)
  const delivery = await findDelivery(dataSource, organisationId, webhookId, deliveryId)
  if (webhook === null || delivery === null) return notFound('delivery')
  if (delivery.state === 'completed')
    return conflict('delivery_completed', 'The delivery is completed; there is nothing to retry.')
  if (delivery.eventKey === TEST_EVENT_KEY)
    return conflict('test_delivery', 'A test event gets one attempt. Send another one instead.')
  if (!webhook.enabled) return webhookDisabled()
  if (!coversEventKey(webhook.subscribedEventKeys, delivery.eventKey))
    return conflict('not_subscribed', `The webhook is not subscribed to ${delivery.eventKey} any more.`)
  return conflict('delivery_changed', 'The delivery changed at the same time. Try again.')
}

/** Stops one waiting or permanently failed delivery for good. */
export async function discardOne(
  dependencies: ApiDependencies,
  actor: Actor,
  webhookId: string,
  deliveryId: string,
): Promise<void> {
  const { organisationId } = actor.caller
  await requireDelivery(dependencies, organisationId, webhookId, deliveryId)
  const { result: discarded, tell } = await dependencies.locks.commands.take(webhookId, () =>
    resolve(dependencies.dataSource, webhookId, async (manager) => {
      const found = await discardDelivery(manager, organisationId, webhookId, deliveryId)
      if (found !== null) await audit(manager, actor, { action: 'delivery.discarded', webhookId, deliveryId })
      return found
    }),
  )
  void tellOfIncident(dependencies, tell)
  dependencies.metrics.deliveriesStopped(discarded === null ? 0 : 1)
  if (discarded === null) {
    throw conflict('not_discardable', 'Only a waiting or permanently failed delivery can be discarded.')
  }
}

export async function discardAllFailed(
  dependencies: ApiDependencies,
  actor: Actor,
  webhookId: string,
): Promise<number> {
  const { organisationId } = actor.caller
  const { result, tell } = await transactOnWebhook(dependencies, webhookId, async (manager) => {
    if ((await lockWebhookInLine(manager, organisationId, webhookId)) === null) throw notFound('webhook')
    return resolveWithin(manager, webhookId, async () => {
      const count = await discardFailed(manager, organisationId, webhookId)
      await audit(manager, actor, { action: 'deliveries.discarded', webhookId, details: { count } })
      return count
    })
  })
  void tellOfIncident(dependencies, tell)
  dependencies.metrics.deliveriesStopped(result)
  return result
}

/** Sends one `webhook:test` event to this webhook only; returns the id of its delivery. */
export async function sendTestEvent(
  { dataSource, dispatcher, metrics, lease }: ApiDependencies,
  actor: Actor,
  webhookId: string,
): Promise<string> {
  const { organisationId } = actor.caller
  const webhook = await findWebhook(dataSource, organisationId, webhookId)
  if (webhook === null) throw notFound('webhook')
  const event = { id: newId(), organisationId, ...testEnvelope(webhookId) }
  const delivery = await dataSource.transaction(async (manager) => {
    const made = await insertTestEvent(manager, event, webhookId, lease)
    const deliveryId = made?.deliveryId ?? null
    if (made !== null) await audit(manager, actor, { action: 'webhook.tested', webhookId, deliveryId })
    return made
  })
  if (delivery === null) throw webhookDisabled()
  metrics.eventPublished(1)
  dispatcher.start([delivery])
  return delivery.deliveryId
}

async function requireEnabled(db: Db, organisationId: string, webhookId: string): Promise<void> {
  const webhook = isUuid(webhookId) ? await findWebhook(db, organisationId, webhookId) : null
  if (webhook === null) throw notFound('webhook')
  if (!webhook.enabled) throw webhookDisabled()
}

async function requireDelivery(
  { dataSource }: ApiDependencies,
  organisationId: string,
  webhookId: string,
  deliveryId: string,
): Promise<void> {
  if ((await findDelivery(dataSource, organisationId, webhookId, deliveryId)) === null)
    throw notFound('delivery')
}

function webhookDisabled(): ProblemError {
  return conflict('webhook_disabled', 'The webhook is disabled. Enable it first.')
}

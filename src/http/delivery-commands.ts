import type { Db } from '../db/db.ts'
import type { Caller } from '../db/queries/api-keys.ts'
import { findDelivery } from '../db/queries/deliveries.ts'
import { insertTestEvent } from '../db/queries/events.ts'
import { runOnce, type IdempotentRequest } from '../db/queries/idempotency.ts'
import { askForRetry, discardDelivery, discardFailed } from '../db/queries/interventions.ts'
import { insertRetryJob, type RetryJobRow } from '../db/queries/retry-jobs.ts'
import { findWebhook, lockWebhook } from '../db/queries/webhooks.ts'
import { tellOfRetries } from '../delivery/tell.ts'
import { START_LEASE_MS } from '../delivery/timing.ts'
import { notFound, ProblemError } from '../errors.ts'
import { testEnvelope } from '../events/test-event.ts'
import { newId } from '../ids.ts'
import { resolve, resolveWithin } from '../incidents/change-incident.ts'
import { tellOfIncident } from '../incidents/tell.ts'
import type { ApiDependencies } from './api.ts'
import { isUuid } from './ids.ts'

/** Makes a retry job and has it started; the sweep starts it where this process does not come to it. */
export async function requestRetryJob(
  dependencies: ApiDependencies,
  caller: Caller,
  wanted: { mode: 'failed' | 'force'; webhookId: string | null },
  idempotency: IdempotentRequest | null,
): Promise<RetryJobRow> {
  const { dataSource, retryWorkflows, logger } = dependencies
  const { organisationId, memberId } = caller
  const { mode, webhookId } = wanted
  const make = async (db: Db): Promise<RetryJobRow> => {
    if (webhookId !== null) await requireEnabled(db, organisationId, webhookId)
    return insertRetryJob(db, { id: newId(), organisationId, webhookId, mode, requestedBy: memberId })
  }
  const { answer, replayed } =
    idempotency === null
      ? { answer: await dataSource.transaction(make), replayed: false }
      : await runOnce(dataSource, idempotency, make)
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
  caller: Caller,
  webhookId: string,
  deliveryId: string,
): Promise<void> {
  const { dataSource } = dependencies
  const { organisationId } = caller
  await requireEnabled(dataSource, organisationId, webhookId)
  await requireDelivery(dependencies, organisationId, webhookId, deliveryId)
  const asked = await askForRetry(dataSource, organisationId, webhookId, deliveryId)
  if (asked === null)
    throw conflict('delivery_completed', 'The delivery is completed; there is nothing to retry.')
  // The answer does not wait for the engine: the wish stands on the row, and the sweep repeats what was not told.
  void tellOfRetries(dependencies, { organisationId, webhookId }, [asked])
}

/** Stops one waiting or permanently failed delivery for good. */
export async function discardOne(
  dependencies: ApiDependencies,
  caller: Caller,
  webhookId: string,
  deliveryId: string,
): Promise<void> {
  const { organisationId } = caller
  await requireDelivery(dependencies, organisationId, webhookId, deliveryId)
  const { result: discarded, tell } = await resolve(dependencies.dataSource, webhookId, (manager) =>
    discardDelivery(manager, organisationId, webhookId, deliveryId),
  )
  void tellOfIncident(dependencies, tell)
  if (discarded === null) {
    throw conflict('not_discardable', 'Only a waiting or permanently failed delivery can be discarded.')
  }
}

export async function discardAllFailed(
  dependencies: ApiDependencies,
  caller: Caller,
  webhookId: string,
): Promise<number> {
  const { organisationId } = caller
  const { result, tell } = await dependencies.dataSource.transaction(async (manager) => {
    if ((await lockWebhook(manager, organisationId, webhookId)) === null) throw notFound('webhook')
    return resolveWithin(manager, webhookId, () => discardFailed(manager, organisationId, webhookId))
  })
  void tellOfIncident(dependencies, tell)
  return result
}

/** Sends one `webhook:test` event to this webhook only; returns the id of its delivery. */
export async function sendTestEvent(
  { dataSource, starter, processId }: ApiDependencies,
  caller: Caller,
  webhookId: string,
): Promise<string> {
  const { organisationId } = caller
  const webhook = await findWebhook(dataSource, organisationId, webhookId)
  if (webhook === null) throw notFound('webhook')
  const event = { id: newId(), organisationId, ...testEnvelope(webhookId) }
  const delivery = await insertTestEvent(dataSource, event, webhookId, {
    owner: processId,
    leaseMs: START_LEASE_MS,
  })
  if (delivery === null) throw webhookDisabled()
  starter.start([delivery])
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

function conflict(code: string, detail: string): ProblemError {
  return new ProblemError({ status: 409, code, title: 'Not possible in this state', detail })
}

import type { DataSource } from 'typeorm'
import type { Actor } from '../../domain/actor.ts'
import { isSubscribedTo } from '../../domain/permissions.ts'
import type { Db } from '../../db/connection/db.ts'
import { createFairLimiter } from '../../db/connection/database-queues.ts'
import { LONG_STATEMENT_TIMEOUT_MS } from '../../db/connection/session-limits.ts'
import { recordAudit } from '../../db/queries/audit.ts'
import { transactOnce, type IdempotentRequest } from '../../db/queries/idempotency.ts'
import { insertRetryJob, type RetryJobRow } from '../../db/queries/retry-jobs.ts'
import {
  type DeliverySelection,
  type RetryMode,
  selectionForAudit,
  type ReplayRange,
} from '../../domain/delivery-filter.ts'
import { newId } from '../../ids.ts'
import type { Logger } from '../../observability/logger.ts'
import type { RetryWorkflows } from '../../temporal/workflows.ts'
import { requireEnabled } from './retry-delivery.ts'
import type { Catalogue } from '../../catalogue/catalogue.ts'
import {
  cancelReplay,
  countReplayable,
  findReplay,
  insertReplay,
  type ReplayCount,
  type ReplayRow,
} from '../../db/queries/replays.ts'
import { requireWebhook } from '../../db/queries/webhooks.ts'
import { conflict, notFound, requireSubscriptionRights, webhookDisabled } from '../../problem-error.ts'

type Dependencies = { dataSource: DataSource; retryWorkflows: RetryWorkflows; logger: Logger }

/**
 * Transactions that count what a job covers, at once in a process, one of an organisation: each may take a minute, and
 * the connections are left to everything else.
 */
const countFairly = createFairLimiter({
  concurrency: 4,
  perKey: 1,
  startTimeoutMs: 5_000,
  timeoutMs: 2 * LONG_STATEMENT_TIMEOUT_MS,
  maxQueued: 1_000,
})

/**
 * Creates a retry job and starts its workflow. The sweeper starts the workflow where this process fails to.
 * `webhookId` null: all enabled webhooks of the organisation.
 */
export async function requestRetryJob(
  dependencies: Dependencies,
  actor: Actor,
  { mode, webhookId, selection }: { mode: RetryMode; webhookId: string | null; selection: DeliverySelection },
  idempotency: IdempotentRequest | null,
): Promise<RetryJobRow> {
  const { organisationId, memberId } = actor
  return createJob(dependencies, organisationId, idempotency, async (db) => {
    if (webhookId !== null) await requireEnabled(db, organisationId, webhookId)
    const id = newId()
    const created = await insertRetryJob(db, {
      id,
      organisationId,
      webhookId,
      mode,
      selection,
      requestedBy: memberId,
    })
    const details = { jobId: id, mode, total: created.total, ...selectionForAudit(selection) }
    await recordAudit(db, actor, { action: 'deliveries.retried', webhookId, details })
    return created
  })
}

/** Commits what `insert` returns, and starts its workflow, which is not awaited: the answer does not depend on Temporal. */
async function createJob<Job extends RetryJobRow | ReplayRow>(
  { dataSource, retryWorkflows, logger }: Dependencies,
  organisationId: string,
  idempotency: IdempotentRequest | null,
  insert: (db: Db) => Promise<Job>,
): Promise<Job> {
  const { answer: job, replayed } = await countFairly(organisationId, () =>
    transactOnce(dataSource, idempotency, insert),
  )
  const { id: jobId, state } = job
  if (!replayed && state === 'running')
    retryWorkflows
      .start({ organisationId, jobId })
      .catch((error: unknown) => logger.warn({ event: 'retry_job.start_failed', jobId, err: error }))
  return job
}

type ReplayDependencies = Dependencies & {
  catalogue: Pick<Catalogue, 'permissionFor'>
  /** Days that deliveries in any final state are kept at least. */
  keptDays: number
}

type Request = { webhookId: string; range: ReplayRange }

/**
 * Creates the job of a replay and starts its workflow, as for a retry job. Throws 403 where the member may not see an
 * event key of the replay, 409 where the webhook is disabled or not subscribed to one that is named.
 */
export async function requestReplay(
  dependencies: ReplayDependencies,
  actor: Actor,
  request: Request,
  idempotency: IdempotentRequest | null,
): Promise<ReplayRow> {
  const { keptDays } = dependencies
  const { organisationId, memberId } = actor
  const { webhookId, range } = request
  return createJob(dependencies, organisationId, idempotency, async (db) => {
    await requireReplayRights(db, dependencies, actor, request)
    const of = { organisationId, webhookId, range, keptDays }
    const count = await countReplayable(db, of)
    const id = newId()
    const created = await insertReplay(db, { ...of, id, count, requestedBy: memberId })
    const details = { jobId: id, ...range, since: count.since, until: count.until, total: count.total }
    await recordAudit(db, actor, { action: 'events.replayed', webhookId, details })
    return created
  })
}

/** Counts what {@link requestReplay} would send, and throws what it would throw. */
export async function countReplay(
  dependencies: ReplayDependencies,
  actor: Actor,
  request: Request,
): Promise<ReplayCount> {
  const { organisationId } = actor
  const { dataSource, keptDays } = dependencies
  await requireReplayRights(dataSource, dependencies, actor, request)
  const count = (db: Db): Promise<ReplayCount> =>
    countReplayable(db, { organisationId, keptDays, ...request })
  return countFairly(organisationId, () => dataSource.transaction(count))
}

/** Cancels a running replay. Throws 404 where there is none; one that has ended stays as it is. */
export async function cancelReplayJob(
  { dataSource }: ReplayDependencies,
  actor: Actor,
  webhookId: string,
  jobId: string,
): Promise<void> {
  const of = { organisationId: actor.organisationId, webhookId }
  await dataSource.transaction(async (db) => {
    if (await cancelReplay(db, of, jobId))
      await recordAudit(db, actor, { action: 'replay.cancelled', webhookId, details: { jobId } })
    else if ((await findReplay(db, of, jobId)) === null) throw notFound('replay')
  })
}

async function requireReplayRights(
  db: Db,
  { catalogue }: Pick<ReplayDependencies, 'catalogue'>,
  actor: Actor,
  { webhookId, range: { eventKeys } }: Request,
): Promise<void> {
  const webhook = await requireWebhook(db, actor.organisationId, webhookId)
  const { subscribedEventKeys } = webhook
  requireSubscriptionRights(catalogue, actor, eventKeys ?? subscribedEventKeys)
  if (!webhook.enabled) throw webhookDisabled(webhook)
  const missing = eventKeys?.find((key) => !isSubscribedTo(subscribedEventKeys, key))
  if (missing !== undefined) throw conflict('not_subscribed', `The webhook is not subscribed to ${missing}.`)
}

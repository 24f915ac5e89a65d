import type { DataSource } from 'typeorm'
import type { Actor } from '../../domain/actor.ts'
import type { Catalogue } from '../../catalogue/catalogue.ts'
import { recordAudit } from '../../db/queries/audit.ts'
import { transactOnce, type IdempotentRequest } from '../../db/queries/idempotency.ts'
import { cancelReplay, countReplayable, findReplay, insertReplay } from '../../db/queries/replays.ts'
import type { ReplayCount, ReplayRow } from '../../db/queries/replays.ts'
import { findWebhook } from '../../db/queries/webhooks.ts'
import { isSubscribedTo, missingPermissions, permissionsForSubscription } from '../../domain/permissions.ts'
import type { ReplayRange } from '../../domain/replay.ts'
import { conflict, forbidden, notFound } from '../../errors.ts'
import { newId } from '../../ids.ts'
import type { Logger } from '../../observability/logger.ts'
import type { RetryWorkflows } from '../../temporal/job-workflows.ts'
import { webhookDisabled } from './preconditions.ts'
import { startJob } from './request-retry-job.ts'

type Dependencies = {
  dataSource: DataSource
  catalogue: Pick<Catalogue, 'permissionFor'>
  retryWorkflows: RetryWorkflows
  logger: Logger
  /** Days that deliveries in any final state are kept at least. */
  keptDays: number
}

type Request = { webhookId: string; range: ReplayRange }

/**
 * Creates the job of a replay and starts its workflow, as for a retry job. Throws 403 where the member may not see an
 * event key of the replay, 409 where the webhook is disabled or not subscribed to one that is named.
 */
export async function requestReplay(
  dependencies: Dependencies,
  actor: Actor,
  request: Request,
  idempotency: IdempotentRequest | null,
): Promise<ReplayRow> {
  const { dataSource, keptDays } = dependencies
  const { organisationId, memberId } = actor
  const { webhookId, range } = request
  await requireReplayRights(dependencies, actor, request)
  const { answer: job, replayed } = await transactOnce(dataSource, idempotency, async (db) => {
    const of = { organisationId, webhookId, range, keptDays }
    const count = await countReplayable(db, of)
    const id = newId()
    const created = await insertReplay(db, { ...of, id, count, requestedBy: memberId })
    const details = { jobId: id, ...range, since: count.since, until: count.until, total: count.total }
    await recordAudit(db, actor, { action: 'events.replayed', webhookId, details })
    return created
  })
  if (!replayed && job.state === 'running') startJob(dependencies, { organisationId, jobId: job.id })
  return job
}

/** Counts what {@link requestReplay} would send, and throws what it would throw. */
export async function countReplay(
  dependencies: Dependencies,
  actor: Actor,
  request: Request,
): Promise<ReplayCount> {
  await requireReplayRights(dependencies, actor, request)
  const { organisationId } = actor
  const { dataSource, keptDays } = dependencies
  return dataSource.transaction((db) => countReplayable(db, { organisationId, keptDays, ...request }))
}

/** Cancels a running replay. Throws 404 where there is none; one that has ended stays as it is. */
export async function cancelReplayJob(
  { dataSource }: Dependencies,
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
  { dataSource, catalogue }: Dependencies,
  actor: Actor,
  { webhookId, range: { eventKeys } }: Request,
): Promise<void> {
  const webhook = await findWebhook(dataSource, actor.organisationId, webhookId)
  if (webhook === null) throw notFound('webhook')
  const { subscribedEventKeys, enabled } = webhook
  const lacking = missingPermissions(
    actor,
    permissionsForSubscription(eventKeys ?? subscribedEventKeys, catalogue.permissionFor),
  )
  if (lacking.length > 0) throw forbidden(lacking)
  if (!enabled) throw webhookDisabled()
  const missing = eventKeys?.find((key) => !isSubscribedTo(subscribedEventKeys, key))
  if (missing !== undefined) throw conflict('not_subscribed', `The webhook is not subscribed to ${missing}.`)
}

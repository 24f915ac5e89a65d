import pLimit from 'p-limit'
import type { DataSource, EntityManager } from 'typeorm'
import { WebhookLockedError, retryWhileUnavailable } from '../../db/connection/connection-errors.ts'
import { coveredStates, findRequestedAttempts, listCovered } from '../../db/queries/covered-deliveries.ts'
import {
  finishRetryJob,
  listUnfinishedWebhooks,
  lockRetryPart,
  updateRetryPart,
} from '../../db/queries/retry-jobs.ts'
import { requestRetries, type RequestedRetry } from '../protocol/change-deliveries.ts'
import type { Logger } from '../../observability/logger.ts'
import type { DeliveryWorkflows } from '../../temporal/delivery-workflows.ts'
import { wakeWorkflows } from './retry-delivery.ts'
import { transactOnWebhook, type WebhookLocks } from '../../webhooks/webhook-locks.ts'

export type RetryJobDependencies = {
  dataSource: DataSource
  locks: WebhookLocks
  workflows: Pick<DeliveryWorkflows, 'wake'>
  logger: Logger
  /** Deliveries of one webhook that a job has in flight at once, at most. */
  webhookConcurrency: number
}

type JobIds = { organisationId: string; jobId: string }

/** `hasAdvanced`: the step counted or requested an attempt. */
export type JobProgress = { isRunning: boolean; hasAdvanced: boolean }

const MAX_CONCURRENT_WEBHOOKS = 4

/** The step leaves out a webhook whose lock is held for longer: the next step comes soon, and the others go on. */
const LOCK_TIMEOUT_MS = 500

/**
 * Takes one step of a retry job: counts the deliveries whose attempt has ended and requests the next ones, so that at most
 * `webhookConcurrency` of each webhook are in flight. It waits for no attempt; the caller repeats it. The cursor of each
 * webhook is stored, and advanced under its lock: concurrent or repeated steps take no delivery twice.
 */
export async function advanceRetryJob(
  dependencies: RetryJobDependencies,
  job: JobIds,
  signal: AbortSignal,
): Promise<JobProgress> {
  const { dataSource } = dependencies
  const limit = pLimit(MAX_CONCURRENT_WEBHOOKS)
  const { organisationId, jobId } = job
  const webhookIds = await retryWhileUnavailable(
    () => listUnfinishedWebhooks(dataSource, organisationId, jobId),
    signal,
  )
  const steps = await limit.map(webhookIds, (webhookId) =>
    advanceWebhook(dependencies, { ...job, webhookId }, signal),
  )
  const isRunning = steps.some(({ isFinished }) => !isFinished)
  if (!isRunning) await retryWhileUnavailable(() => finishRetryJob(dataSource, organisationId, jobId), signal)
  return { isRunning, hasAdvanced: steps.some(({ hasAdvanced }) => hasAdvanced) }
}

type Step = { requested: RequestedRetry[]; isFinished: boolean; hasAdvanced: boolean }

const LEFT_OUT: Step = { requested: [], isFinished: false, hasAdvanced: false }

async function advanceWebhook(
  dependencies: RetryJobDependencies,
  part: JobIds & { webhookId: string },
  signal: AbortSignal,
): Promise<Step> {
  const { webhookConcurrency } = dependencies
  const work = (manager: EntityManager): Promise<Step> => takeStep(manager, part, webhookConcurrency)
  const step = await retryWhileUnavailable(
    () => transactOnWebhook(dependencies, part.webhookId, work, LOCK_TIMEOUT_MS),
    signal,
  ).catch((error: unknown) => {
    if (error instanceof WebhookLockedError) return LEFT_OUT
    throw error
  })
  await wakeWorkflows(dependencies, part, step.requested)
  return step
}

async function takeStep(
  manager: EntityManager,
  part: JobIds & { webhookId: string },
  webhookConcurrency: number,
): Promise<Step> {
  const progress = await lockRetryPart(manager, part)
  if (progress === null) return { requested: [], isFinished: true, hasAdvanced: false }
  const { mode, selection, done, succeeded, failed, cursor } = progress
  const attempts = await findRequestedAttempts(manager, part.organisationId, progress.underWay)
  const count = (outcome: (typeof attempts)[number]['outcome']): number =>
    attempts.filter((attempt) => attempt.outcome === outcome).length
  const open = attempts.filter(({ outcome }) => outcome === 'under_way')
  const ended = attempts.length - open.length
  const limit = webhookConcurrency - open.length
  const next =
    limit > 0
      ? await listCovered(manager, { ...part, mode, selection, cursor, limit })
      : { ids: [], last: cursor }
  const { organisationId, webhookId } = part
  // What was begun since it was listed is left alone.
  const of = { organisationId, webhookId, ids: next.ids, states: coveredStates(mode) }
  const requested = next.ids.length === 0 ? [] : await requestRetries(manager, of)
  const begun = requested.map(({ deliveryId, attempts }) => ({ deliveryId, number: attempts + 1 }))
  const underWay = [...open.map(({ deliveryId, number }) => ({ deliveryId, number })), ...begun]
  const hasMoved = next.last !== null && next.last !== cursor
  const isFinished = next.last === null && underWay.length === 0
  await updateRetryPart(manager, part, {
    done: done + ended,
    succeeded: succeeded + count('succeeded'),
    failed: failed + count('failed'),
    cursor: next.last ?? cursor,
    underWay,
    finished: isFinished,
  })
  return { requested, isFinished, hasAdvanced: hasMoved || ended > 0 }
}

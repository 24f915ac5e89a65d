import pLimit from 'p-limit'
import type { DataSource, EntityManager } from 'typeorm'
import { WebhookLockedError, retryWhileUnavailable } from '../../db/connection/connection-errors.ts'
import {
  coveredStates,
  findRequestedAttempts,
  listCovered,
  type RequestedAttempt,
} from '../../db/queries/delivery-selection.ts'
import { listReplayable } from '../../db/queries/replays.ts'
import {
  finishRetryJob,
  listUnfinishedWebhooks,
  lockRetryPart,
  updateRetryPart,
  type RetryPart,
  type StoredReplay,
} from '../../db/queries/retry-jobs.ts'
import { replay as replayEvents, requestRetries, type RequestedRetry } from '../protocol/change-deliveries.ts'
import type { Logger } from '../../observability/logger.ts'
import type { Endpoints } from '../attempt/endpoint-concurrency.ts'
import type { DeliveryWorkflows } from '../../temporal/workflows.ts'
import { wakeWorkflows } from './retry-delivery.ts'
import { transactOnWebhook, type WebhookLocks } from '../../webhooks/webhook-locks.ts'

export type RetryJobDependencies = {
  dataSource: DataSource
  locks: WebhookLocks
  workflows: Pick<DeliveryWorkflows, 'wake'>
  logger: Logger
  endpoints: Pick<Endpoints, 'limit'>
  /** Deliveries of one webhook that a job has in flight at once, at most. */
  webhookConcurrency: number
}

type JobIds = { organisationId: string; jobId: string }

/** `hasAdvanced`: it counted or requested an attempt. `isRefused`: its webhook is disabled, nothing is under way. */
export type JobProgress = { isRunning: boolean; hasAdvanced: boolean; isRefused: boolean }

const MAX_CONCURRENT_WEBHOOKS = 4

/** Of the POSTs that the endpoint takes at once, the replays to a webhook leave the others to fresh events. */
const REPLAY_SHARE = 0.5

/** The step leaves out a webhook whose lock is held for longer: the next step comes soon, and the others go on. */
const LOCK_TIMEOUT_MS = 500

/**
 * Takes one step of a retry job: counts the deliveries whose attempt has ended and requests the next ones, so that at most
 * `webhookConcurrency` of each webhook are in flight, and of all its replays half of what its endpoint takes at once. It
 * waits for no attempt; the caller repeats it. The cursor of each webhook is stored, and advanced under its lock: concurrent
 * or repeated steps take no delivery twice.
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
  return {
    isRunning,
    hasAdvanced: steps.some(({ hasAdvanced }) => hasAdvanced),
    isRefused: steps.some(({ isRefused }) => isRefused),
  }
}

type Step = Omit<JobProgress, 'isRunning'> & { requested: RequestedRetry[]; isFinished: boolean }

const LEFT_OUT: Step = { requested: [], isFinished: false, hasAdvanced: false, isRefused: false }

async function advanceWebhook(
  dependencies: RetryJobDependencies,
  part: JobIds & { webhookId: string },
  signal: AbortSignal,
): Promise<Step> {
  const work = (manager: EntityManager): Promise<Step> => takeStep(dependencies, manager, part)
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
  { endpoints, webhookConcurrency }: Pick<RetryJobDependencies, 'endpoints' | 'webhookConcurrency'>,
  manager: EntityManager,
  part: JobIds & { webhookId: string },
): Promise<Step> {
  const progress = await lockRetryPart(manager, part)
  if (progress === null) return { ...LEFT_OUT, isFinished: true }
  const { replay, done, succeeded, failed, replays } = progress
  const attempts = await findRequestedAttempts(manager, part.organisationId, progress.underWay)
  const count = (outcome: (typeof attempts)[number]['outcome']): number =>
    attempts.filter((attempt) => attempt.outcome === outcome).length
  const open = attempts.filter(({ outcome }) => outcome === 'under_way')
  const ended = attempts.length - open.length
  const share = (endpoints.limit(part.webhookId) * REPLAY_SHARE) / (replays ?? 1)
  const limit = (replays === null ? webhookConcurrency : Math.max(1, Math.floor(share))) - open.length
  const next =
    progress.mode === 'replay'
      ? await beginReplayed(manager, part, progress, limit)
      : await beginRetries(manager, part, progress, limit)
  const underWay = [...open.map(({ deliveryId, number }) => ({ deliveryId, number })), ...next.begun]
  const isFinished = next.isLast && underWay.length === 0
  await updateRetryPart(manager, part, {
    done: done + ended,
    succeeded: succeeded + count('succeeded'),
    failed: failed + count('failed'),
    ...next.cursors,
    underWay,
    // A replay may find more than were counted.
    minTotal: replay === null ? 0 : done + ended + underWay.length,
    finished: isFinished,
  })
  return {
    requested: next.requested,
    isFinished,
    hasAdvanced: next.hasMoved || ended > 0,
    isRefused: next.isRefused && underWay.length === 0,
  }
}

type Cursors = Pick<RetryPart, 'cursor' | 'eventCursor'>

/** Attempts that a step begins. `requested`: those whose workflow may have to be woken. `isLast`: none is left. */
type Begun = {
  begun: RequestedAttempt[]
  requested: RequestedRetry[]
  cursors: Cursors
  hasMoved: boolean
  isRefused: boolean
  isLast: boolean
}

async function beginRetries(
  manager: EntityManager,
  part: JobIds & { webhookId: string },
  { mode, selection, isOfAll, cursor, eventCursor }: Cursors & Extract<RetryPart, { replay: null }>,
  limit: number,
): Promise<Begun> {
  const next =
    limit > 0
      ? await listCovered(manager, { ...part, mode, selection, cursor, limit })
      : { ids: [], last: cursor }
  const { organisationId, webhookId } = part
  // What was begun since it was listed is left alone.
  const of = { organisationId, webhookId, ids: next.ids, states: coveredStates(mode) }
  const requested = next.ids.length === 0 ? [] : await requestRetries(manager, of)
  const isRefused = !isOfAll && areRefused(next.ids, requested)
  const last = isRefused ? cursor : next.last
  return {
    begun: requested.map(({ deliveryId, attempts }) => ({ deliveryId, number: attempts + 1 })),
    requested,
    cursors: { cursor: last ?? cursor, eventCursor },
    hasMoved: last !== null && last !== cursor,
    isRefused,
    isLast: next.last === null,
  }
}

/** The deliveries that it makes are pending and due: any worker begins them. */
async function beginReplayed(
  manager: EntityManager,
  { organisationId, webhookId }: JobIds & { webhookId: string },
  { replay, cursor, eventCursor }: Cursors & { replay: StoredReplay },
  limit: number,
): Promise<Begun> {
  const page = { organisationId, webhookId, replay, eventCursor, limit }
  const next = limit > 0 ? await listReplayable(manager, page) : { ids: [], last: eventCursor }
  const of = { organisationId, webhookId, eventIds: next.ids }
  const made = next.ids.length === 0 ? [] : await replayEvents(manager, of)
  const isRefused = areRefused(next.ids, made)
  const last = isRefused ? eventCursor : next.last
  return {
    begun: made.map(({ deliveryId }) => ({ deliveryId, number: 1 })),
    requested: [],
    cursors: { cursor, eventCursor: last ?? eventCursor },
    hasMoved: last !== null && last !== eventCursor,
    isRefused,
    isLast: next.last === null,
  }
}

/** The webhook is switched off: a job of it alone keeps its place, and goes on when it is switched on again. */
function areRefused(listed: readonly string[], begun: readonly unknown[]): boolean {
  return listed.length > 0 && begun.length === 0
}

import type { DataSource } from 'typeorm'
import type { Config } from '../config/load.ts'
import { createAttempt } from '../deliveries/attempt/make-attempt.ts'
import type { AttemptDependencies } from '../deliveries/attempt/attempt-request.ts'
import { createDeliveryRows } from '../deliveries/dispatch/delivery-rows.ts'
import { createDispatcher, type Dispatcher } from '../deliveries/dispatch/dispatcher.ts'
import type { WebhookChanges } from '../webhooks/webhook-changes.ts'
import { claimLeaseMs } from '../deliveries/lease-times.ts'
import {
  createFollowingWorkflows,
  type FollowingWorkflows,
} from '../deliveries/recovery/following-workflows.ts'
import { createSweeper, type Sweeper } from '../deliveries/recovery/sweeper.ts'
import type { Commits } from '../deliveries/protocol/commit-events.ts'
import type { Shutdown } from '../shutdown.ts'
import type { DeliveryWorkflows } from '../temporal/delivery-workflows.ts'
import type { ErasureWorkflows } from '../temporal/erasure-workflows.ts'
import type { RetryWorkflows } from '../temporal/retry-workflows.ts'
import type { TerminateIfStuck } from '../temporal/workflow-progress.ts'
import { processTimers } from '../timers.ts'
import { transactLonger } from '../db/connection/longer-statements.ts'
import { countPending } from '../db/queries/backlog.ts'
import { createBacklogLimit } from '../deliveries/publish/backlog-limit.ts'
import { createPublisher, type Publisher } from '../deliveries/publish/publish.ts'
import type { Logger } from '../observability/logger.ts'

/** The roles of a process: API, worker or both. */
export type Roles = { api: boolean; worker: boolean }

type Parts = AttemptDependencies & {
  dataSource: DataSource
  webhookChanges: WebhookChanges
  workflows: DeliveryWorkflows
  retryWorkflows: RetryWorkflows
  erasureWorkflows: ErasureWorkflows
  terminateIfStuck: TerminateIfStuck
  isServing: () => boolean
  shutdown: Shutdown
}

type Dispatch = {
  commits: Commits
  dispatcher: Dispatcher
  sweep: Sweeper
  following: FollowingWorkflows
}

/** Workflow starts, and inline first attempts, in flight at once. */
export const START_CONCURRENCY = 40
const INLINE_SLOTS = 256

/** Builds what begins deliveries, and what recovers them. */
export function createDispatch(config: Config, roles: Roles, parts: Parts): Dispatch {
  const leaseMs = claimLeaseMs(config.attemptTimeoutMs)
  const rows = createDeliveryRows({ ...parts, leaseMs })
  const dispatcher = createDispatcher({
    ...parts,
    rows,
    makeAttempt: createAttempt(parts),
    timers: processTimers,
    mode: config.firstAttempt,
    concurrency: START_CONCURRENCY,
    makesAttempts: roles.worker,
    isFollowingOwed: () => following.isOwed(),
    slots: INLINE_SLOTS,
  })
  const sweep = createSweeper({ ...parts, rows, dispatcher })
  const following = createFollowingWorkflows({
    ...parts,
    rows,
    isQuiet: () => dispatcher.isQuiet(),
    hasRecentDeliveries: () => dispatcher.hasRecentDeliveries(),
  })
  const commits: Commits = { reserve: (ids, count) => dispatcher.reserve(ids, count), leaseMs }
  return { commits, dispatcher, sweep, following }
}

/** Builds the publisher of a process, with its limit of waiting deliveries.  */
export function createPublishing(
  dataSource: DataSource,
  config: Pick<Config, 'publishBacklogLimit'>,
  { commits, logger }: { commits: Commits; logger: Logger },
): Publisher {
  const backlog = createBacklogLimit({
    limit: config.publishBacklogLimit,
    count: (limit) => transactLonger(dataSource, (manager) => countPending(manager, limit)),
    logger,
  })
  return createPublisher(dataSource, commits, backlog)
}

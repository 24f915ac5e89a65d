import type { DataSource } from 'typeorm'
import type { Config } from '../config/load.ts'
import { createAttempt, type AttemptDependencies } from '../deliveries/attempt/make-attempt.ts'
import { createDeliveryRows } from '../deliveries/dispatch/delivery-rows.ts'
import { createDispatcher, type Dispatcher } from '../deliveries/dispatch/dispatcher.ts'
import { claimLeaseMs } from '../deliveries/protocol/claim.ts'
import { createFollowingWorkflows } from '../deliveries/recovery/following-workflows.ts'
import { createSweeper } from '../deliveries/recovery/sweeper.ts'
import type { Commits } from '../deliveries/protocol/commit-events.ts'
import type { Shutdown } from '../shutdown.ts'
import type { DeliveryWorkflows, ErasureWorkflows, RetryWorkflows } from '../temporal/workflows.ts'
import type { TerminateIfStuck } from '../temporal/workflow-progress.ts'
import { createPace, createRunningClock, processTimers } from '../timers.ts'
import { transactLonger } from '../db/connection/database-client.ts'
import { countPending } from '../db/queries/backlog.ts'
import { createBacklogLimit } from '../deliveries/publish/backlog-limit.ts'
import { createPublisher, type Publisher } from '../deliveries/publish/publish.ts'
import type { Logger } from '../observability/logger.ts'
import type { TemporalService } from '../temporal/temporal-service.ts'
import { createWebhookChanges, createWebhookLocks } from '../webhooks/webhook-locks.ts'
import { createEndpoints } from '../deliveries/attempt/endpoint-concurrency.ts'
import { createRecordFirstSuccess } from '../deliveries/attempt/record-outcome.ts'
import { createRecordUnderLock } from '../deliveries/attempt/record-under-lock.ts'

/** The roles of a process: API, worker or both. */
export type Roles = { api: boolean; worker: boolean }

type Parts = Pick<
  AttemptDependencies,
  'dataSource' | 'clock' | 'httpClient' | 'secretBox' | 'logger' | 'metrics' | 'incidentWorkflows'
> & {
  workflows: DeliveryWorkflows
  retryWorkflows: RetryWorkflows
  erasureWorkflows: ErasureWorkflows
  terminateIfStuck: TerminateIfStuck
  temporal: Pick<TemporalService, 'isServing'>
  shutdown: Shutdown
}

/** Workflow starts, and inline first attempts, in flight at once. */
export const START_CONCURRENCY = 40
const INLINE_SLOTS = 256

/**
 * Of the time-outs that are reported to Temporal: ten a second in each process leave a small Temporal room for all others.
 * Where hundreds of endpoints hang, none waits for longer, or they would take all slots of attempts.
 */
const TIMEOUT_PACE = { intervalMs: 100, maxDelayMs: 10_000 }

/** Builds what makes attempts, what begins deliveries, and what recovers them. */
export function createDeliveries(config: Config, roles: Roles, parts: Parts) {
  const { dataSource, temporal } = parts
  const leaseMs = claimLeaseMs(config.attemptTimeoutMs)
  // Only there a delivery that the process completed is to have a workflow too.
  const followAfterMs = config.firstAttempt === 'overflow' ? 0 : null
  const locks = createWebhookLocks(config.databasePoolSize)
  const webhookChanges = createWebhookChanges()
  const attempts: AttemptDependencies = {
    ...parts,
    recordFirstSuccess: createRecordFirstSuccess(dataSource, { followAfterMs }),
    recordUnderLock: createRecordUnderLock({ dataSource, locks, followAfterMs }),
    locks,
    attemptTimeoutMs: config.attemptTimeoutMs,
    endpoints: createEndpoints({ maxLimit: config.webhookConcurrency, runningMs: createRunningClock() }),
    timeoutPace: createPace(TIMEOUT_PACE),
  }
  const rows = createDeliveryRows({ ...attempts, leaseMs })
  const isServing = (): boolean => temporal.isServing()
  const dispatcher = createDispatcher({
    ...parts,
    ...attempts,
    rows,
    webhookChanges,
    isServing,
    createAttempt: (onAttempt) => createAttempt(attempts, onAttempt),
    timers: processTimers,
    mode: config.firstAttempt,
    concurrency: START_CONCURRENCY,
    makesAttempts: roles.worker,
    slots: INLINE_SLOTS,
  })
  const sweep = createSweeper({ ...parts, isServing, rows, dispatcher })
  const following = createFollowingWorkflows({ ...parts, rows, isServing, dispatcher })
  const commits: Commits = { reserve: (ids, count) => dispatcher.reserve(ids, count), leaseMs }
  return { attempts, commits, dispatcher, sweep, following, webhookChanges }
}

/** Builds the publisher of a process, with its limit of waiting deliveries.  */
export function createPublishing(
  dataSource: DataSource,
  config: Pick<Config, 'publishBacklogLimit'>,
  parts: { commits: Commits; dispatcher: Pick<Dispatcher, 'start'>; logger: Logger },
): Publisher {
  const backlog = createBacklogLimit({
    limit: config.publishBacklogLimit,
    count: (limit) => transactLonger(dataSource, (manager) => countPending(manager, limit)),
    logger: parts.logger,
  })
  return createPublisher({ dataSource, backlog, ...parts })
}

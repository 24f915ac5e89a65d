import type { Config } from '../config/load.ts'
import { createAttempt } from '../deliveries/attempt/make-attempt.ts'
import type { AttemptDependencies } from '../deliveries/attempt/attempt-request.ts'
import { createDispatcher, type Dispatcher } from '../deliveries/dispatch/dispatcher.ts'
import { createOverdueAttempts } from '../deliveries/recovery/overdue-attempts.ts'
import { createSweeper, type Sweeper } from '../deliveries/recovery/sweeper.ts'
import { deliveryLeaseMs } from '../deliveries/lease-times.ts'
import type { WebhookCache } from '../deliveries/dispatch/webhook-cache.ts'
import { createWorkflowBackfill, type WorkflowBackfill } from '../deliveries/recovery/workflow-backfill.ts'
import type { Shutdown } from '../shutdown.ts'
import type { DeliveryWorkflows } from '../temporal/delivery-workflows.ts'
import type { ErasureWorkflows } from '../temporal/erasure-workflows.ts'
import type { RetryWorkflows } from '../temporal/retry-workflows.ts'
import type { TerminateIfStuck } from '../temporal/workflow-progress.ts'
import type { Roles } from './service.ts'

type Parts = AttemptDependencies & {
  webhooks: WebhookCache
  workflows: DeliveryWorkflows
  retryWorkflows: RetryWorkflows
  erasureWorkflows: ErasureWorkflows
  terminateIfStuck: TerminateIfStuck
  isServing: () => boolean
  processId: string
  shutdown: Shutdown
}

type Dispatch = {
  /** The lease of this process on the deliveries that it commits. */
  lease: { owner: string; leaseMs: number }
  dispatcher: Dispatcher
  sweep: Sweeper
  backfill: WorkflowBackfill
}

/** Builds what begins with deliveries, and what recovers them. */
export function createDispatch(config: Config, roles: Roles, parts: Parts): Dispatch {
  const { processId, isServing } = parts
  const leaseMs = deliveryLeaseMs(config.attemptTimeoutMs)
  const makeAttempt = createAttempt(parts)
  const dispatcher = createDispatcher({
    ...parts,
    makeAttempt,
    mode: config.firstAttempt,
    concurrency: config.startConcurrency,
    makesAttempts: roles.worker,
    isBackfillPending: () => backfill.isPending(),
    slots: config.firstAttemptSlots,
    leaseMs,
  })
  const sweep = createSweeper({
    ...parts,
    dispatcher,
    leaseMs,
    attemptsInline: config.firstAttempt !== 'workflow',
    overdueAttempts:
      config.firstAttempt === 'direct' ? createOverdueAttempts({ ...parts, makeAttempt }) : null,
  })
  const backfill = createWorkflowBackfill({
    ...parts,
    isIdle: () => isServing() && dispatcher.isIdle(),
    hasRecentDeliveries: () => dispatcher.hasRecentDeliveries(),
  })
  return { lease: { owner: processId, leaseMs }, dispatcher, sweep, backfill }
}

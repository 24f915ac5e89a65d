import type { Config } from '../config.ts'
import { createAttempt } from '../delivery/attempt.ts'
import type { AttemptDependencies } from '../delivery/attempt-request.ts'
import { createStarter, type Starter } from '../delivery/starter.ts'
import { createSweep, type Sweep } from '../delivery/sweep.ts'
import { deliveryLeaseMs } from '../delivery/timing.ts'
import type { WebhookCache } from '../delivery/webhook-cache.ts'
import { createWorkflowBackfill, type WorkflowBackfill } from '../delivery/workflow-backfill.ts'
import type { Shutdown } from '../shutdown.ts'
import type { DeliveryWorkflows } from '../temporal/delivery-workflows.ts'
import type { RetryWorkflows } from '../temporal/retry-workflows.ts'
import type { TerminateIfStuck } from '../temporal/workflow-progress.ts'
import type { Roles } from './service.ts'

type Parts = AttemptDependencies & {
  webhooks: WebhookCache
  workflows: DeliveryWorkflows
  retryWorkflows: RetryWorkflows
  terminateIfStuck: TerminateIfStuck
  isServing: () => boolean
  processId: string
  shutdown: Shutdown
}

type Dispatch = {
  /** The lease of this process on the deliveries that it commits. */
  lease: { owner: string; leaseMs: number }
  starter: Starter
  sweep: Sweep
  backfill: WorkflowBackfill
}

/** Builds what begins with deliveries, and what recovers them. */
export function createDispatch(config: Config, roles: Roles, parts: Parts): Dispatch {
  const { processId, isServing } = parts
  const leaseMs = deliveryLeaseMs(config.attemptTimeoutMs)
  const starter = createStarter({
    ...parts,
    makeAttempt: createAttempt(parts),
    mode: config.firstAttempt,
    concurrency: config.startConcurrency,
    makesAttempts: roles.worker,
    isBackfillOwed: () => backfill.isOwed(),
    slots: config.firstAttemptSlots,
    leaseMs,
  })
  const sweep = createSweep({
    ...parts,
    starter,
    leaseMs,
    attemptsInline: config.firstAttempt !== 'workflow',
  })
  const backfill = createWorkflowBackfill({
    ...parts,
    isIdle: () => isServing() && starter.isIdle(),
    isInUse: () => starter.isInUse(),
  })
  return { lease: { owner: processId, leaseMs }, starter, sweep, backfill }
}

import type { OverdueDelivery } from '../../db/queries/due-deliveries.ts'
import { attemptOfRow } from '../../domain/attempt-outcome.ts'
import type { Logger } from '../../observability/logger.ts'
import type { Metrics } from '../../observability/metrics.ts'
import { deliveryWorkflowId, type DeliveryWorkflows } from '../../temporal/workflows.ts'
import type { TerminateIfStuck, WorkflowProgress } from '../../temporal/workflow-progress.ts'
import { hold, type DeliveryRows } from '../dispatch/delivery-rows.ts'
import type { Dispatcher } from '../dispatch/dispatcher.ts'
import { SWEEP_DELAY_MS, type NextSweep, type SweptRow } from '../protocol/sweep.ts'
import { callForEach } from '../../temporal/calls.ts'

/** Overdue deliveries in one pass: most are merely late, and each costs a call to Temporal. */
const OVERDUE_LIMIT = 50
const MAX_CONCURRENT_RECOVERIES = 16

/** Final deliveries to signal in one pass, and how long they are left to this process. */
const SIGNAL_LIMIT = 200
const SIGNAL_HOLD_MS = 60_000
const MAX_CONCURRENT_SIGNALS = 4

/** Rows whose call failed are swept again after this delay, or up to half as long again: not all at one instant. */
export const RETRY_DELAY_MS = 2_000

/** A late delivery whose workflow is alive or paused is checked again after half of the time for which it has been late. */
const MAX_ALIVE_INTERVAL_MS = 300_000

export type RecoveryDependencies = {
  rows: DeliveryRows
  workflows: DeliveryWorkflows
  terminateIfStuck: TerminateIfStuck
  dispatcher: Pick<Dispatcher, 'attemptOverdue'>
  logger: Logger
  metrics: Metrics
}

/** How many rows one part of a pass took, and whether it should be repeated at once. */
export type Taken = { count: number; isMoreWaiting: boolean }

/** Builds the parts of a pass that recover deliveries whose workflow is gone, stuck, or does not know of their end. */
export function createDeliveryRecovery(dependencies: RecoveryDependencies): (() => Promise<Taken>)[] {
  const { rows, workflows, dispatcher, logger, metrics } = dependencies

  /** Makes overdue attempts, or starts workflows again that are gone or stuck. */
  async function recoverOverdue(): Promise<Taken> {
    const found = await rows.findOverdue(OVERDUE_LIMIT)
    const taken = await hold(rows, found, SWEEP_DELAY_MS)
    metrics.sweepTook('delivery', taken.length)
    const options = { concurrency: MAX_CONCURRENT_RECOVERIES, onFailed: logRefused }
    const read = await callForEach(taken, readProgress, options)
    // Nothing overtakes a workflow that is paused, or that does not know yet of a retry: it would go on waiting.
    const mayOvertake = read.done.filter(
      ({ row, result }) => result.state !== 'paused' && !(result.state === 'alive' && row.retryRequested),
    )
    const attempted = await dispatcher.attemptOverdue(mayOvertake.map(({ row }) => row))
    const toRecover = read.done.filter(({ row }) => !attempted.has(row.deliveryId))
    const { done, left } = await callForEach(toRecover, ({ row, result }) => recoverOne(row, result), {
      ...options,
      onFailed: ({ row }, error) => logRefused(row, error),
    })
    const later = done.flatMap(({ result }) => (result === null ? [] : [result]))
    await rows.sweepLater([...later, ...[...read.left, ...left.map(({ row }) => row)].map(sweepSoon)])
    // Deliveries that are merely late, or whose call is refused, are no reason for another pass at once.
    const recovered = attempted.size + done.length - later.length
    const isMoreWaiting = found.length === OVERDUE_LIMIT && 2 * recovered > taken.length
    return { count: taken.length, isMoreWaiting }
  }

  async function readProgress({ deliveryId, attempts }: OverdueDelivery): Promise<WorkflowProgress> {
    const progress = await dependencies.terminateIfStuck(deliveryWorkflowId(deliveryId))
    if (progress.state !== 'stuck') return progress
    const { cause, taskAttempts } = progress
    metrics.workflowRecovered('stuck')
    const attempt = attempts + 1
    logger.error({ event: 'sweep.replaced_workflow', deliveryId, attempt, cause, taskAttempts })
    return progress
  }

  /** Returns when to sweep the row again; null where its workflow goes on, and is swept as before. */
  async function recoverOne(
    delivery: OverdueDelivery,
    progress: WorkflowProgress,
  ): Promise<NextSweep | null> {
    const { deliveryId, sweepAt, attempts, retryRequested, lateMs } = delivery
    const inMs = Math.min(MAX_ALIVE_INTERVAL_MS, Math.max(SWEEP_DELAY_MS, lateMs / 2))
    switch (progress.state) {
      case 'paused':
        await leavePaused(delivery, progress.since)
        return { deliveryId, sweepAt, inMs, pausedSince: progress.since }
      case 'alive':
        if (retryRequested) await workflows.wake(delivery, attempts)
        return { deliveryId, sweepAt, inMs, pausedSince: null }
      case 'gone':
      case 'stuck':
        await workflows.start(delivery, attemptOfRow(delivery))
        if (progress.state === 'stuck') return null
        metrics.workflowRecovered('gone')
        logger.warn({ event: 'sweep.restarted_workflow', deliveryId, attempt: attempts + 1 })
        return null
    }
  }

  /** Reports once that a workflow is paused. A retry requested meanwhile is signalled once, and acts when it is unpaused. */
  async function leavePaused(delivery: OverdueDelivery, pausedSince: Date): Promise<void> {
    if (delivery.pausedSince !== null) return
    const { deliveryId, attempts } = delivery
    if (delivery.retryRequested) await workflows.wake(delivery, attempts)
    logger.warn({ event: 'sweep.found_paused_workflow', deliveryId, attempt: attempts + 1, pausedSince })
  }

  /** Signals the workflows of deliveries that have ended without them. */
  async function signalFinal(): Promise<Taken> {
    const found = await rows.findOwedSignals(SIGNAL_LIMIT)
    const taken = await hold(rows, found, SIGNAL_HOLD_MS)
    metrics.sweepTook('stopped', taken.length)
    const { done, left } = await callForEach(taken, ({ deliveryId }) => workflows.stop(deliveryId), {
      concurrency: MAX_CONCURRENT_SIGNALS,
      onFailed: logRefused,
    })
    const settled = done.map(({ row }) => ({ ...row, inMs: null, pausedSince: null }))
    await rows.sweepLater([...settled, ...left.map(sweepSoon)])
    return {
      count: taken.length,
      isMoreWaiting: taken.length === SIGNAL_LIMIT && 2 * done.length > taken.length,
    }
  }

  function logRefused({ deliveryId }: { deliveryId: string }, error: unknown): void {
    logger.warn({ event: 'sweep.call_refused', deliveryId, err: error })
  }

  return [recoverOverdue, signalFinal]
}

function sweepSoon({ deliveryId, sweepAt, pausedSince = null }: SweptRow & Partial<NextSweep>): NextSweep {
  return { deliveryId, sweepAt, inMs: RETRY_DELAY_MS * (1 + Math.random() / 2), pausedSince }
}

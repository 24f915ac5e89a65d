import type { DataSource } from 'typeorm'
import { markStarted } from '../../db/queries/leases.ts'
import {
  giveBack,
  sweepAgain,
  sweepLater,
  takeOverdue,
  takeUnstarted,
  type OverdueDelivery,
} from '../../db/queries/recovery.ts'
import { notePaused } from '../../db/queries/paused-deliveries.ts'
import { markSignalled, takeToSignal } from '../../db/queries/stops.ts'
import type { Logger } from '../../observability/logger.ts'
import type { Metrics } from '../../observability/metrics.ts'
import { deliveryWorkflowId, type DeliveryWorkflows } from '../../temporal/delivery-workflows.ts'
import type { TerminateIfStuck, WorkflowProgress } from '../../temporal/workflow-progress.ts'
import { callForEach } from './bounded-calls.ts'
import type { Dispatcher } from '../dispatch/dispatcher.ts'
import type { OverdueAttempts } from './overdue-attempts.ts'
import { SWEEP_DELAY_MS } from '../lease-times.ts'

/** Deliveries without a workflow in one pass; fewer while the dispatcher is busy. */
const UNSTARTED_LIMIT = 200
const UNSTARTED_LIMIT_WHEN_BUSY = 20

/** Overdue deliveries in one pass: most are merely late, and each costs a call to Temporal. */
const OVERDUE_LIMIT = 50
const MAX_CONCURRENT_RECOVERIES = 16

/** Final deliveries to signal in one pass. */
const SIGNAL_LIMIT = 200
const MAX_CONCURRENT_SIGNALS = 4

/** Rows whose call failed are taken again after this delay, by any process. */
export const RETRY_DELAY_MS = 2_000

/** Late deliveries whose workflow is alive or paused are checked at growing intervals. */
const ALIVE_CHECK_INTERVAL = { minMs: SWEEP_DELAY_MS, maxMs: 300_000 }

export type RecoveryDependencies = {
  dataSource: DataSource
  workflows: DeliveryWorkflows
  terminateIfStuck: TerminateIfStuck
  dispatcher: Dispatcher
  logger: Logger
  metrics: Metrics
  processId: string
  /** How long deliveries are leased for the dispatcher. */
  leaseMs: number
  /** False while Temporal is unavailable, as far as this process knows. */
  isServing: () => boolean
  /** This process makes first attempts of healthy webhooks inline while Temporal is unavailable. */
  attemptsInline: boolean
  /** Makes overdue attempts of endpoints that are well; null where their workflows do. */
  overdueAttempts: OverdueAttempts | null
}

/** How many rows one part of a pass took, and whether it should be repeated at once. */
export type Taken = { count: number; isMoreWaiting: boolean }

/** Its next attempt was made here, its workflow is only late or paused, or its workflow was started. */
type Recovered = 'attempted' | 'alive' | 'started' | { pausedSince: Date }

const NOTHING: Taken = { count: 0, isMoreWaiting: false }

/** Builds the parts of a pass that recover deliveries whose process died or whose workflow is gone or stuck. */
export function createDeliveryRecovery(dependencies: RecoveryDependencies): (() => Promise<Taken>)[] {
  const { dataSource, processId, workflows, dispatcher, logger, metrics, leaseMs, isServing } = dependencies

  /** Gives the dispatcher deliveries that no process has started. */
  async function startUnstarted(): Promise<Taken> {
    // Without Temporal it takes only what it can attempt inline: another process may reach Temporal.
    const onlyHealthy = !isServing()
    if (onlyHealthy && !dependencies.attemptsInline) return NOTHING
    const limit = dispatcher.isBusy() ? UNSTARTED_LIMIT_WHEN_BUSY : UNSTARTED_LIMIT
    const rooms = dispatcher.rooms()
    const taken = await takeUnstarted(dataSource, { owner: processId, leaseMs, limit, onlyHealthy, rooms })
    metrics.sweepTook('delivery', taken.length)
    dispatcher.start(taken)
    return { count: taken.length, isMoreWaiting: taken.length === UNSTARTED_LIMIT }
  }

  /** Makes overdue attempts, or starts deliveries again whose workflow is gone or stuck. */
  async function recoverOverdue(): Promise<Taken> {
    if (!isServing()) return NOTHING
    const taken = await takeOverdue(dataSource, { holdMs: SWEEP_DELAY_MS, limit: OVERDUE_LIMIT })
    metrics.sweepTook('delivery', taken.length)
    const { done, left } = await callForEach(taken, recover, {
      concurrency: MAX_CONCURRENT_RECOVERIES,
      onFailed: logRefused,
    })
    const withResult = (wanted: Recovered): string[] =>
      idsOf(done.filter(({ result }) => result === wanted).map(({ row }) => row))
    const [started, alive] = [withResult('started'), withResult('alive')]
    const paused = done.flatMap(({ row: { deliveryId, attempts }, result }) =>
      typeof result === 'string' ? [] : [{ deliveryId, attempts, since: result.pausedSince }],
    )
    if (started.length > 0) {
      await markStarted(dataSource, started, SWEEP_DELAY_MS)
      await sweepAgain(dataSource, started, SWEEP_DELAY_MS)
    }
    if (alive.length > 0) await sweepLater(dataSource, alive, ALIVE_CHECK_INTERVAL)
    if (paused.length > 0) await notePaused(dataSource, paused, ALIVE_CHECK_INTERVAL)
    if (left.length > 0) await giveBack(dataSource, idsOf(left), RETRY_DELAY_MS)
    // Deliveries that are merely late are no reason for another pass at once.
    const late = alive.length + paused.length
    const isMoreWaiting = taken.length === OVERDUE_LIMIT && done.length > 2 * late
    return { count: taken.length, isMoreWaiting }
  }

  /** Signals the workflows of deliveries that were stopped, or completed by another run. */
  async function signalFinal(): Promise<Taken> {
    if (!isServing()) return NOTHING
    const taken = await takeToSignal(dataSource, SIGNAL_LIMIT)
    metrics.sweepTook('stopped', taken.length)
    const { done, left } = await callForEach(taken, ({ deliveryId }) => workflows.stop(deliveryId), {
      concurrency: MAX_CONCURRENT_SIGNALS,
      onFailed: logRefused,
    })
    if (done.length > 0) await markSignalled(dataSource, idsOf(done.map(({ row }) => row)))
    if (left.length > 0) await giveBack(dataSource, idsOf(left), RETRY_DELAY_MS)
    return { count: taken.length, isMoreWaiting: taken.length === SIGNAL_LIMIT }
  }

  /**
   * Starting a workflow that may run is cheaper than describing it first: Temporal starts no second one. Where this
   * process makes the attempt it has to describe it: nothing overtakes a workflow that is paused.
   */
  async function recover(delivery: OverdueDelivery): Promise<Recovered> {
    const { overdueAttempts } = dependencies
    if (overdueAttempts === null && !delivery.retryRequested && (await start(delivery))) {
      logRestarted(delivery)
      return 'started'
    }
    const progress = await dependencies.terminateIfStuck(deliveryWorkflowId(delivery.deliveryId))
    if (progress.state === 'paused') return leavePaused(delivery, progress.since)
    if (progress.state === 'stuck') logReplaced(delivery, progress)
    if (await overdueAttempts?.make(delivery)) return 'attempted'
    // The signal of a requested retry starts a workflow where none runs.
    if (delivery.retryRequested) await workflows.wake(delivery, delivery.attempts)
    else if (progress.state === 'alive') return 'alive'
    else await start(delivery)
    if (progress.state === 'gone') logRestarted(delivery)
    return 'started'
  }

  /** Says once that a workflow is paused. A retry requested meanwhile is signalled once, and acts when it is unpaused. */
  async function leavePaused(delivery: OverdueDelivery, pausedSince: Date): Promise<Recovered> {
    if (delivery.pausedSince !== null) return { pausedSince }
    const { deliveryId, attempts } = delivery
    if (delivery.retryRequested) await workflows.wake(delivery, attempts)
    const fields = { event: 'sweep.found_paused_workflow', deliveryId, attempt: attempts + 1, pausedSince }
    logger.warn(fields, fields.event)
    return { pausedSince }
  }

  /** Returns false when the workflow runs already. */
  function start(delivery: OverdueDelivery): Promise<boolean> {
    const next = { number: delivery.attempts + 1, dueAtMs: delivery.nextAttemptAt?.getTime() ?? null }
    return workflows.start(delivery, next, { allowRestart: true })
  }

  function logRefused({ deliveryId }: { deliveryId: string }, error: unknown): void {
    logger.warn({ event: 'sweep.call_refused', deliveryId, err: error }, 'sweep.call_refused')
  }

  function logRestarted({ deliveryId, attempts }: OverdueDelivery): void {
    metrics.workflowRecovered('gone')
    const fields = { event: 'sweep.restarted_workflow', deliveryId, attempt: attempts + 1 }
    logger.warn(fields, fields.event)
  }

  function logReplaced(
    { deliveryId, attempts }: OverdueDelivery,
    { cause, taskAttempts }: Extract<WorkflowProgress, { state: 'stuck' }>,
  ): void {
    metrics.workflowRecovered('stuck')
    const attempt = attempts + 1
    const fields = { event: 'sweep.replaced_workflow', deliveryId, attempt, cause, taskAttempts }
    logger.error(fields, fields.event)
  }

  return [startUnstarted, recoverOverdue, signalFinal]
}

function idsOf(deliveries: readonly { deliveryId: string }[]): string[] {
  return deliveries.map(({ deliveryId }) => deliveryId)
}

import type { DataSource } from 'typeorm'
import { markStarted } from '../../db/queries/keeping.ts'
import {
  giveBack,
  sweepAgain,
  sweepLater,
  takeOverdue,
  takeUnstarted,
  type OverdueDelivery,
} from '../../db/queries/recovery.ts'
import type { Logger } from '../../logger.ts'
import type { Metrics } from '../../metrics.ts'
import { deliveryWorkflowId, type DeliveryWorkflows } from '../../temporal/delivery-workflows.ts'
import type { TerminateIfStuck } from '../../temporal/workflow-progress.ts'
import { callForEach } from './bounded-calls.ts'
import type { Dispatcher } from '../dispatch/dispatcher.ts'
import { SWEEP_AFTER_MS } from '../lease-times.ts'

/** Deliveries of one pass that have no workflow yet; and where the dispatcher has enough to do already. */
const UNSTARTED_LIMIT = 200
const UNSTARTED_LIMIT_WHEN_BUSY = 20

/** Overdue deliveries of one pass: most may be merely late, and each costs Temporal a call. */
const OVERDUE_LIMIT = 50
const CONCURRENT_CALLS = 16

/** Calls of one pass take no longer, so that a pass comes to its end. */
const CALLS_TIMEOUT_MS = 8_000

/** What could not be looked after is taken up again so much later, by any process. */
const GIVE_BACK_DELAY_MS = 2_000

/** Deliveries that are late though their workflow is alive are looked at ever more rarely. */
const LATER = { minMs: SWEEP_AFTER_MS, maxMs: 300_000 }

export type RecoveryDependencies = {
  dataSource: DataSource
  workflows: DeliveryWorkflows
  terminateIfStuck: TerminateIfStuck
  dispatcher: Dispatcher
  logger: Logger
  metrics: Metrics
  processId: string
  /** How long deliveries are held that the dispatcher is to begin with. */
  leaseMs: number
  /** Temporal can be reached from here. */
  isServing: () => boolean
  /** This process makes first attempts of healthy webhooks by itself when Temporal is away. */
  attemptsInline: boolean
}

/** What one part of a pass took, and whether it should be repeated at once. */
export type Taken = { count: number; isMoreWaiting: boolean }

/** Recovers deliveries whose process died or whose workflow is gone or stuck. */
export type DeliveryRecovery = {
  /** Gives the dispatcher deliveries that no process has started. */
  startUnstarted(): Promise<Taken>
  /** Makes sure that overdue deliveries have a workflow that moves. */
  recoverOverdue(): Promise<Taken>
}

const NOTHING: Taken = { count: 0, isMoreWaiting: false }

type Recovered = 'alive' | 'started'

export function createDeliveryRecovery(dependencies: RecoveryDependencies): DeliveryRecovery {
  const { dataSource, workflows, dispatcher, logger, metrics, leaseMs, isServing } = dependencies
  const owner = dependencies.processId

  async function startUnstarted(): Promise<Taken> {
    // Without Temporal only what can be attempted here is taken: another process may serve the rest.
    const onlyHealthy = !isServing()
    if (onlyHealthy && !dependencies.attemptsInline) return NOTHING
    const isBusy = dispatcher.isBusy()
    const limit = isBusy ? UNSTARTED_LIMIT_WHEN_BUSY : UNSTARTED_LIMIT
    const taken = await takeUnstarted(dataSource, {
      owner,
      leaseMs,
      limit,
      onlyHealthy,
      rooms: dispatcher.rooms(),
    })
    metrics.sweepTook('delivery', taken.length)
    dispatcher.start(taken)
    return { count: taken.length, isMoreWaiting: taken.length === UNSTARTED_LIMIT }
  }

  async function recoverOverdue(): Promise<Taken> {
    if (!isServing()) return NOTHING
    const taken = await takeOverdue(dataSource, { holdMs: SWEEP_AFTER_MS, limit: OVERDUE_LIMIT })
    metrics.sweepTook('delivery', taken.length)
    const { answered, left } = await callForEach(taken, recover, {
      concurrency: CONCURRENT_CALLS,
      timeoutMs: CALLS_TIMEOUT_MS,
      onRefused({ deliveryId }, error) {
        logger.warn({ event: 'sweep.refused', deliveryId, err: error }, 'sweep.refused')
      },
    })
    const idsOf = (result: Recovered): string[] =>
      answered.filter(({ answer }) => answer === result).map(({ row }) => row.deliveryId)
    const [started, alive] = [idsOf('started'), idsOf('alive')]
    if (started.length > 0) {
      await markStarted(dataSource, started, SWEEP_AFTER_MS)
      await sweepAgain(dataSource, started, SWEEP_AFTER_MS)
    }
    if (alive.length > 0) await sweepLater(dataSource, alive, LATER)
    if (left.length > 0)
      await giveBack(
        dataSource,
        left.map(({ deliveryId }) => deliveryId),
        GIVE_BACK_DELAY_MS,
      )
    // Where most are merely late there is no hurry.
    const isMoreWaiting = taken.length === OVERDUE_LIMIT && started.length > alive.length
    return { count: taken.length, isMoreWaiting }
  }

  /** Starting is cheaper than asking whether a workflow runs: one that does is not started again. */
  async function recover(delivery: OverdueDelivery): Promise<Recovered> {
    if (delivery.retryRequested) return wake(delivery)
    if (await isStarted(delivery)) {
      noteRestarted(delivery)
      return 'started'
    }
    const progress = await dependencies.terminateIfStuck(deliveryWorkflowId(delivery.deliveryId))
    if (progress.state === 'alive') return 'alive'
    await isStarted(delivery)
    if (progress.state === 'stuck') noteReplaced(delivery, progress)
    else noteRestarted(delivery)
    return 'started'
  }

  /** The retry that a user asked for starts a workflow where none runs. */
  async function wake(delivery: OverdueDelivery): Promise<Recovered> {
    const progress = await dependencies.terminateIfStuck(deliveryWorkflowId(delivery.deliveryId))
    await workflows.wake(delivery, delivery.attempts)
    if (progress.state === 'stuck') noteReplaced(delivery, progress)
    if (progress.state === 'gone') noteRestarted(delivery)
    return 'started'
  }

  function isStarted(delivery: OverdueDelivery): Promise<boolean> {
    const next = { number: delivery.attempts + 1, dueAtMs: delivery.nextAttemptAt?.getTime() ?? null }
    return workflows.start(delivery, next, { again: true })
  }

  function noteRestarted({ deliveryId, attempts }: OverdueDelivery): void {
    metrics.workflowRecovered('gone')
    const fields = { event: 'sweep.restarted', deliveryId, attempt: attempts + 1 }
    logger.warn(fields, 'sweep.restarted')
  }

  function noteReplaced(
    { deliveryId, attempts }: OverdueDelivery,
    { cause, taskAttempts }: { cause: string; taskAttempts: number },
  ): void {
    metrics.workflowRecovered('stuck')
    const fields = {
      event: 'sweep.replaced_workflow',
      deliveryId,
      attempt: attempts + 1,
      cause,
      taskAttempts,
    }
    logger.error(fields, 'sweep.replaced_workflow')
  }

  return { startUnstarted, recoverOverdue }
}

import type { OwedWorkflow } from '../../db/queries/due-deliveries.ts'
import type { Logger } from '../../observability/logger.ts'
import type { Metrics } from '../../observability/metrics.ts'
import type { DeliveryWorkflows } from '../../temporal/workflows.ts'
import { isTemporalUnavailable } from '../../temporal/calls.ts'
import { processTimers, sleep, type Timers } from '../../timers.ts'
import type { Dispatcher } from '../dispatch/dispatcher.ts'
import { hold, type DeliveryRows } from '../dispatch/delivery-rows.ts'
import { createPollLoop, type PollLoop } from '../../poll-loop.ts'

/** Starts workflows that follow: of deliveries that ended without one. */
type FollowingWorkflows = Pick<PollLoop, 'start' | 'stop'> & {
  /** One pass; returns how many workflows it started. */
  runOnce(signal?: AbortSignal): Promise<number>
}

const INTERVAL_MS = 1_000

/** Deliveries of one pass, and how long they are left to this process: longer than a pass at the lowest pace. */
const LIMIT = 20
const HOLD_MS = 30_000

/** While deliveries arrive it sleeps after each start for this multiple of its duration: it uses a fifth of the time. */
const SLEEP_FACTOR = 4

/** The lowest pace, under any load: more than two a second in each process. */
const MAX_SLEEP_MS = 400

/** Starts one workflow at a time, as fast as fresh deliveries leave room for it. */
export function createFollowingWorkflows(dependencies: {
  rows: Pick<DeliveryRows, 'findOwedWorkflows' | 'sweepLater' | 'markWorkflowsStarted'>
  workflows: Pick<DeliveryWorkflows, 'startFollowing'>
  /** False while Temporal is unavailable, as far as this process knows. */
  isServing: () => boolean
  dispatcher: Pick<Dispatcher, 'isQuiet' | 'hasRecentDeliveries' | 'followingOwed'>
  logger: Logger
  metrics: Metrics
  timers?: Timers
}): FollowingWorkflows {
  const { rows, workflows, isServing, dispatcher, logger, metrics } = dependencies
  const { timers = processTimers } = dependencies

  async function runOnce(signal?: AbortSignal): Promise<number> {
    if (!isServing()) return 0
    const found = await rows.findOwedWorkflows(LIMIT)
    dispatcher.followingOwed(found.length > 0)
    let started = 0
    for (const delivery of await hold(rows, found, HOLD_MS)) {
      if (signal?.aborted === true) break
      const beganAtMs = timers.nowMs()
      const result = await start(delivery)
      if (result === 'unavailable') break
      if (result === 'started') started++
      await sleep(timers, restMs(timers.nowMs() - beganAtMs), signal)
    }
    return started
  }

  /** Returns how long to sleep after a start that took `tookMs`. */
  function restMs(tookMs: number): number {
    if (!dispatcher.isQuiet()) return Math.max(0, MAX_SLEEP_MS - tookMs)
    return dispatcher.hasRecentDeliveries() ? Math.min(MAX_SLEEP_MS, SLEEP_FACTOR * tookMs) : 0
  }

  async function start(delivery: OwedWorkflow): Promise<'started' | 'refused' | 'unavailable'> {
    const { deliveryId, sweepAt, state, attempts, attemptedAt, failureCode, statusCode } = delivery
    const answer = { failureCode, statusCode, ...(attemptedAt !== null && { atMs: attemptedAt.getTime() }) }
    let isFollowing = false
    try {
      isFollowing = await workflows.startFollowing(delivery, { state, attempts, ...answer })
    } catch (error) {
      logger.warn({ event: 'following_workflow.refused', deliveryId, err: error })
      return isTemporalUnavailable(error) ? 'unavailable' : 'refused'
    }
    metrics.startEnded('followed')
    await rows.markWorkflowsStarted([deliveryId])
    // One that had a workflow owes it a signal now: it may wait.
    if (isFollowing) await rows.sweepLater([{ deliveryId, sweepAt, inMs: null, pausedSince: null }])
    return 'started'
  }

  const loop = createPollLoop({
    intervalMs: INTERVAL_MS,
    run: async (signal) => (await runOnce(signal)) === LIMIT,
    event: 'following_workflow.failed',
    logger,
    timers,
  })
  return { ...loop, runOnce }
}

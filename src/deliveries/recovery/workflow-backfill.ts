import { setTimeout as delay } from 'node:timers/promises'
import type { DataSource } from 'typeorm'
import {
  forgetBackfill,
  markStarted,
  takeForBackfill,
  type CompletedDelivery,
} from '../../db/queries/keeping.ts'
import type { Logger } from '../../logger.ts'
import type { Metrics } from '../../metrics.ts'
import type { DeliveryWorkflows } from '../../temporal/delivery-workflows.ts'
import { isEngineAway } from '../../temporal/engine-away.ts'
import { createPollLoop, type PollLoop } from './poll-loop.ts'
import { SWEEP_AFTER_MS } from '../lease-times.ts'

/** Starts workflows for deliveries that were completed without one, so that the Temporal UI shows them. */
export type WorkflowBackfill = Pick<PollLoop, 'start' | 'stop'> & {
  /** One pass; returns how many workflows it started. */
  runOnce(signal?: AbortSignal): Promise<number>
  /** The last pass found some: what is fresh must not wait behind their workflows. */
  isOwed(): boolean
}

const INTERVAL_MS = 1_000

/** Deliveries of one pass; another process may take them again after the lease. */
const LIMIT = 20
const LEASE_MS = 30_000

/** While deliveries come it sleeps after each start for so many times its duration: it takes a fifth of the time. */
const SLEEP_FACTOR = 4

/** A delivery that was completed so long ago gets no workflow any more. */
const FORGET_AFTER_MS = 3_600_000
const FORGET_INTERVAL_MS = 60_000
const FORGET_LIMIT = 10_000

type Sleep = (ms: number, signal: AbortSignal) => Promise<unknown>

/** One start at a time, and only while `isIdle`: deliveries go first. `sleep` rejects when its signal aborts. */
export function createWorkflowBackfill(dependencies: {
  dataSource: DataSource
  workflows: Pick<DeliveryWorkflows, 'follow'>
  isIdle: () => boolean
  /** Deliveries came in the last second. */
  isInUse: () => boolean
  logger: Logger
  metrics: Metrics
  sleep?: Sleep
}): WorkflowBackfill {
  const { dataSource, workflows, isIdle, isInUse, logger, metrics } = dependencies
  const sleep: Sleep = dependencies.sleep ?? ((ms, signal) => delay(ms, undefined, { signal }))
  let isOwed = false
  let forgotAtMs = -Infinity

  async function runOnce(signal: AbortSignal = new AbortController().signal): Promise<number> {
    await forgetOld()
    if (!isIdle()) return 0
    const taken = await takeForBackfill(dataSource, { leaseMs: LEASE_MS, limit: LIMIT })
    isOwed = taken.length > 0
    let started = 0
    for (const delivery of taken) {
      if (signal.aborted || !isIdle()) break
      const beganAtMs = performance.now()
      const result = await start(delivery)
      if (result === 'away') break
      if (result === 'started') started++
      if (isInUse())
        await sleep(SLEEP_FACTOR * (performance.now() - beganAtMs), signal).catch(() => undefined)
    }
    return started
  }

  async function start(delivery: CompletedDelivery): Promise<'started' | 'refused' | 'away'> {
    const { deliveryId, attempts } = delivery
    try {
      await workflows.follow(delivery, attempts)
    } catch (error) {
      logger.warn({ event: 'follow_up.refused', deliveryId, err: error }, 'follow_up.refused')
      return isEngineAway(error) ? 'away' : 'refused'
    }
    metrics.startEnded('followed')
    await markStarted(dataSource, [deliveryId], SWEEP_AFTER_MS)
    return 'started'
  }

  async function forgetOld(): Promise<void> {
    if (performance.now() - forgotAtMs < FORGET_INTERVAL_MS) return
    const options = { olderThanMs: FORGET_AFTER_MS, limit: FORGET_LIMIT }
    if ((await forgetBackfill(dataSource, options)) < FORGET_LIMIT) forgotAtMs = performance.now()
  }

  const loop = createPollLoop({
    intervalMs: INTERVAL_MS,
    run: async (signal) => (await runOnce(signal)) === LIMIT,
    event: 'follow_up.failed',
    logger,
  })
  return { ...loop, runOnce, isOwed: () => isOwed }
}

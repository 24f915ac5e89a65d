import { setTimeout as delay } from 'node:timers/promises'
import type { DataSource } from 'typeorm'
import {
  forgetBackfill,
  markStarted,
  takeForBackfill,
  type CompletedDelivery,
} from '../../db/queries/leases.ts'
import type { Logger } from '../../observability/logger.ts'
import type { Metrics } from '../../observability/metrics.ts'
import type { DeliveryWorkflows } from '../../temporal/delivery-workflows.ts'
import { isTemporalUnavailable } from '../../temporal/unavailable.ts'
import { createPollLoop, type PollLoop } from './poll-loop.ts'
import { SWEEP_DELAY_MS } from '../lease-times.ts'

/** Starts workflows for deliveries that were completed without one, so that the Temporal UI shows them. */
export type WorkflowBackfill = Pick<PollLoop, 'start' | 'stop'> & {
  /** One pass; returns how many workflows it started. */
  runOnce(signal?: AbortSignal): Promise<number>
  /** True when the last pass found deliveries without a workflow. */
  isPending(): boolean
}

const INTERVAL_MS = 1_000

/** Deliveries of one pass; another process may take them again after the lease. */
const LIMIT = 20
const LEASE_MS = 30_000

/** While deliveries arrive it sleeps after each start for this multiple of its duration: it uses a fifth of the time. */
const SLEEP_FACTOR = 4

/** Age at which a completed delivery gets no workflow any more. */
const BACKFILL_TTL_MS = 3_600_000
const EXPIRY_INTERVAL_MS = 60_000
const EXPIRY_LIMIT = 10_000

type Sleep = (ms: number, signal: AbortSignal) => Promise<unknown>

/** Starts one workflow at a time, and only while `isIdle`. `sleep` rejects when its signal aborts. */
export function createWorkflowBackfill(dependencies: {
  dataSource: DataSource
  workflows: Pick<DeliveryWorkflows, 'startBackfill'>
  isIdle: () => boolean
  hasRecentDeliveries: () => boolean
  logger: Logger
  metrics: Metrics
  sleep?: Sleep
}): WorkflowBackfill {
  const { dataSource, workflows, isIdle, hasRecentDeliveries, logger, metrics } = dependencies
  const sleep: Sleep = dependencies.sleep ?? ((ms, signal) => delay(ms, undefined, { signal }))
  let isPending = false
  let expiredAtMs = -Infinity

  async function runOnce(signal: AbortSignal = new AbortController().signal): Promise<number> {
    await expireOld()
    if (!isIdle()) return 0
    const taken = await takeForBackfill(dataSource, { leaseMs: LEASE_MS, limit: LIMIT })
    isPending = taken.length > 0
    let started = 0
    for (const delivery of taken) {
      if (signal.aborted || !isIdle()) break
      const beganAtMs = performance.now()
      const result = await start(delivery)
      if (result === 'unavailable') break
      if (result === 'started') started++
      if (hasRecentDeliveries())
        await sleep(SLEEP_FACTOR * (performance.now() - beganAtMs), signal).catch(() => undefined)
    }
    return started
  }

  async function start(delivery: CompletedDelivery): Promise<'started' | 'refused' | 'unavailable'> {
    const { deliveryId, attempts } = delivery
    try {
      await workflows.startBackfill(delivery, attempts)
    } catch (error) {
      logger.warn({ event: 'backfill.refused', deliveryId, err: error }, 'backfill.refused')
      return isTemporalUnavailable(error) ? 'unavailable' : 'refused'
    }
    metrics.startEnded('backfilled')
    await markStarted(dataSource, [deliveryId], SWEEP_DELAY_MS)
    return 'started'
  }

  async function expireOld(): Promise<void> {
    if (performance.now() - expiredAtMs < EXPIRY_INTERVAL_MS) return
    const options = { olderThanMs: BACKFILL_TTL_MS, limit: EXPIRY_LIMIT }
    if ((await forgetBackfill(dataSource, options)) < EXPIRY_LIMIT) expiredAtMs = performance.now()
  }

  const loop = createPollLoop({
    intervalMs: INTERVAL_MS,
    run: async (signal) => (await runOnce(signal)) === LIMIT,
    event: 'backfill.failed',
    logger,
  })
  return { ...loop, runOnce, isPending: () => isPending }
}

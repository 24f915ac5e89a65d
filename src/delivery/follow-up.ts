import pLimit from 'p-limit'
import type { DataSource } from 'typeorm'
import { isDatabaseAway } from '../db/connection-errors.ts'
import { markStarted, takeToFollow } from '../db/queries/keeping.ts'
import type { Logger } from '../logger.ts'
import type { Metrics } from '../metrics.ts'
import type { DeliveryWorkflows } from '../temporal/delivery-workflows.ts'
import { isEngineAway } from '../temporal/engine-away.ts'
import { SWEEP_AFTER_MS } from './timing.ts'

/** Gives workflows to deliveries that were completed while the engine was behind. */
export type FollowUp = { start(): void; stop(): Promise<void>; runOnce(): Promise<number> }

const EVERY_MS = 1_000

/** Workflows of one pass, and of these how many are started at once: fresh work may come at any time. */
const LIMIT = 50
const CONCURRENT_STARTS = 4

/** What this process took and did not come to is taken again after that. */
const TAKEN_FOR_MS = 30_000

/** Nobody looks for the workflow of a delivery that went well so long ago. */
const FORGET_AFTER_MS = 3_600_000

/** Only while `isIdle`: whatever is still to be delivered goes first. */
export function createFollowUp(dependencies: {
  dataSource: DataSource
  workflows: Pick<DeliveryWorkflows, 'follow'>
  isIdle: () => boolean
  logger: Logger
  metrics: Metrics
}): FollowUp {
  const { dataSource, workflows, isIdle, logger, metrics } = dependencies
  const limit = pLimit(CONCURRENT_STARTS)
  let timer: NodeJS.Timeout | null = null
  let running: Promise<void> = Promise.resolve()
  let stopped = true

  async function runOnce(): Promise<number> {
    if (!isIdle()) return 0
    const options = { leaseMs: TAKEN_FOR_MS, forgetAfterMs: FORGET_AFTER_MS, limit: LIMIT }
    const taken = await takeToFollow(dataSource, options)
    let away = false
    const started = await limit.map(taken, async (delivery) => {
      if (away || !isIdle()) return []
      try {
        await workflows.follow(delivery, delivery.attempts)
        metrics.startEnded('followed')
        return [delivery.deliveryId]
      } catch (error) {
        away ||= isEngineAway(error)
        const { deliveryId } = delivery
        logger.warn({ event: 'follow_up.refused', deliveryId, err: error }, 'follow_up.refused')
        return []
      }
    })
    const ids = started.flat()
    if (ids.length > 0) await markStarted(dataSource, ids, SWEEP_AFTER_MS)
    return ids.length
  }

  async function pass(): Promise<void> {
    let pauseMs = EVERY_MS
    try {
      if ((await runOnce()) === LIMIT) pauseMs = 0
    } catch (error) {
      const fields = { event: 'follow_up.failed', err: error }
      if (isDatabaseAway(error)) logger.warn(fields, 'follow_up.failed')
      else logger.error(fields, 'follow_up.failed')
    }
    if (!stopped) schedule(pauseMs)
  }

  function schedule(pauseMs: number): void {
    timer = setTimeout(() => {
      running = pass()
    }, pauseMs)
  }

  return {
    runOnce,
    start() {
      stopped = false
      schedule(EVERY_MS)
    },
    async stop() {
      stopped = true
      if (timer !== null) clearTimeout(timer)
      await running
    },
  }
}

import pLimit from 'p-limit'
import type { DataSource } from 'typeorm'
import { isDatabaseAway } from '../db/connection-errors.ts'
import { postponeSweep, takeForSweep, type SweptDelivery } from '../db/queries/keeping.ts'
import type { Logger } from '../logger.ts'
import type { DeliveryWorkflows } from '../temporal/delivery-workflows.ts'
import type { Starter } from './starter.ts'
import { START_LEASE_MS, SWEEP_AFTER_MS } from './timing.ts'

/** Looks after deliveries that may have lost their keeper. */
export type Sweep = {
  /** One pass; returns how many deliveries were looked at. */
  runOnce(): Promise<number>
  start(): void
  stop(): Promise<void>
}

const EVERY_MS = 1_000

/** Rows of one pass; after a full pass the next follows at once. */
const LIMIT = 200

/** Looks at the engine under way at once. */
const CONCURRENT_LOOKS = 8

/**
 * Deliveries whose owner died or that wait because the engine was away are started; those overdue by two minutes
 * whose workflow is gone (terminated by hand, engine data lost) are started again from the recorded attempt.
 */
export function createSweep(dependencies: {
  dataSource: DataSource
  workflows: DeliveryWorkflows
  starter: Starter
  logger: Logger
  processId: string
}): Sweep {
  const { dataSource, workflows, starter, logger, processId: owner } = dependencies
  const limit = pLimit(CONCURRENT_LOOKS)
  let timer: NodeJS.Timeout | null = null
  let running: Promise<void> = Promise.resolve()
  let stopped = true

  async function runOnce(): Promise<number> {
    const taken = await takeForSweep(dataSource, { owner, leaseMs: START_LEASE_MS, limit: LIMIT })
    starter.start(taken.filter((delivery) => !delivery.started))
    const looked = await limit.map(
      taken.filter((delivery) => delivery.started),
      look,
    )
    const kept = looked.filter((id) => id !== null)
    if (kept.length > 0) await postponeSweep(dataSource, kept, SWEEP_AFTER_MS)
    return taken.length
  }

  /** The delivery's id when it has a keeper (again), null when the engine could not tell. */
  async function look(delivery: SweptDelivery): Promise<string | null> {
    const { deliveryId, attempts, nextAttemptAt } = delivery
    try {
      if (await workflows.isRunning(deliveryId)) return deliveryId
      const next = { number: attempts + 1, dueAtMs: nextAttemptAt?.getTime() ?? null }
      await workflows.start(delivery, next, { again: true })
      logger.warn({ event: 'sweep.restarted', deliveryId, attempt: next.number }, 'sweep.restarted')
      return deliveryId
    } catch (error) {
      logger.warn({ event: 'sweep.engine_away', deliveryId, err: error }, 'sweep.engine_away')
      return null
    }
  }

  async function pass(): Promise<void> {
    let pauseMs = EVERY_MS
    try {
      if ((await runOnce()) === LIMIT) pauseMs = 0
    } catch (error) {
      const fields = { event: 'sweep.failed', err: error }
      if (isDatabaseAway(error)) logger.warn(fields, 'sweep.failed')
      else logger.error(fields, 'sweep.failed')
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
      schedule(0)
    },
    async stop() {
      stopped = true
      if (timer !== null) clearTimeout(timer)
      await running
    },
  }
}

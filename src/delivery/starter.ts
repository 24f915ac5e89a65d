import pLimit from 'p-limit'
import type { DataSource } from 'typeorm'
import type { DeliveryToStart } from '../db/queries/events.ts'
import { markStarted, releaseDeliveries, renewLeases } from '../db/queries/keeping.ts'
import type { Logger } from '../logger.ts'
import type { Metrics } from '../metrics.ts'
import type { DeliveryWorkflows } from '../temporal/delivery-workflows.ts'
import { isEngineAway } from '../temporal/engine-away.ts'
import { createBatcher } from './batcher.ts'
import { START_LEASE_MS, SWEEP_AFTER_MS } from './timing.ts'

/** Starts a workflow for each delivery that this process committed or took from the sweep. */
export type Starter = {
  /** Takes deliveries that are leased to this process; returns at once. */
  start(deliveries: readonly DeliveryToStart[]): void
  /** True while it has enough to do, or the engine is away: then nothing more should be taken for it. */
  isBusy(): boolean
  load(): StarterLoad
  /** Gives back what has not been started, and returns when nothing is under way. */
  stop(): Promise<void>
}

/** Deliveries that wait for their start, and starts under way. */
export type StarterLoad = { waiting: number; inFlight: number }

/** Above this many waiting starts a delivery goes straight back to its row, and comes again with the sweep. */
const MAX_BACKLOG = 10_000

/** Above this many it asks for no more work. */
const BUSY_BACKLOG = 200

/** After a refused start the sweep tries again, this much later. */
const RETRY_AFTER_MS = 1_000

/** How long started deliveries wait to be noted together in one statement. */
const NOTE_AFTER_MS = 50

/**
 * Bounded: `concurrency` starts at once, MAX_BACKLOG waiting. Nothing is lost with this process: its leases run out
 * and another one's sweep takes the rows.
 */
export function createStarter(dependencies: {
  dataSource: DataSource
  workflows: DeliveryWorkflows
  logger: Logger
  metrics: Metrics
  processId: string
  concurrency: number
}): Starter {
  const { dataSource, workflows, logger, metrics, processId: owner, concurrency } = dependencies
  const limit = pLimit(concurrency)
  const waiting = new Map<string, Promise<void>>()
  let stopping = false
  let pausedUntilMs = 0

  const quietly = (what: string) => (error: unknown) =>
    logger.warn({ event: 'starter.database', what, err: error }, 'starter.database')
  const noteStarted = createBatcher<string>(NOTE_AFTER_MS, (ids) =>
    markStarted(dataSource, ids, SWEEP_AFTER_MS).catch(quietly('mark')),
  )
  const giveBack = createBatcher<string>(NOTE_AFTER_MS, (ids) =>
    releaseDeliveries(dataSource, owner, ids, stopping ? 0 : 2 * RETRY_AFTER_MS).catch(quietly('release')),
  )
  const renewal = setInterval(() => {
    if (waiting.size === 0) return
    void renewLeases(dataSource, [...waiting.keys()], { owner, leaseMs: START_LEASE_MS }).catch(
      quietly('renew'),
    )
  }, START_LEASE_MS / 3)

  async function startOne(delivery: DeliveryToStart): Promise<void> {
    const { deliveryId } = delivery
    if (stopping || Date.now() < pausedUntilMs) {
      giveBack.add(deliveryId)
      metrics.startEnded('returned')
    } else {
      try {
        await workflows.start(delivery, { number: 1, dueAtMs: null }, { again: false })
        noteStarted.add(deliveryId)
        metrics.startEnded('started')
      } catch (error) {
        refused(deliveryId, error)
        giveBack.add(deliveryId)
        metrics.startEnded('refused')
      }
    }
    waiting.delete(deliveryId)
  }

  /** While the engine is away the others need not each find that out, nor fill the log. */
  function refused(deliveryId: string, error: unknown): void {
    if (Date.now() < pausedUntilMs) return
    if (isEngineAway(error)) pausedUntilMs = Date.now() + RETRY_AFTER_MS
    logger.warn({ event: 'starter.refused', deliveryId, err: error }, 'starter.refused')
  }

  return {
    start(deliveries) {
      for (const delivery of deliveries) {
        if (stopping || waiting.size >= MAX_BACKLOG) {
          giveBack.add(delivery.deliveryId)
          metrics.startEnded('returned')
          continue
        }
        waiting.set(delivery.deliveryId, limit(startOne, delivery))
      }
    },
    isBusy: () => waiting.size > BUSY_BACKLOG || Date.now() < pausedUntilMs,
    load: () => ({ waiting: limit.pendingCount, inFlight: limit.activeCount }),
    async stop() {
      stopping = true
      clearInterval(renewal)
      // Those that wait give back at once now; only those under way take their time.
      await Promise.all(waiting.values())
      await Promise.all([noteStarted.flush(), giveBack.flush()])
    },
  }
}

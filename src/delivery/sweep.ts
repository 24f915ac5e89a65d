import pLimit from 'p-limit'
import type { DataSource } from 'typeorm'
import { isDatabaseAway } from '../db/connection-errors.ts'
import { findIncidentsToTell } from '../db/queries/incidents.ts'
import { markTold, takeToTell } from '../db/queries/interventions.ts'
import { markStarted, postponeSweep, takeForSweep, type SweptDelivery } from '../db/queries/keeping.ts'
import { takeJobsForSweep } from '../db/queries/retry-jobs.ts'
import type { Logger } from '../logger.ts'
import type { Metrics } from '../metrics.ts'
import type { DeliveryWorkflows } from '../temporal/delivery-workflows.ts'
import { isEngineAway } from '../temporal/engine-away.ts'
import type { IncidentWorkflows } from '../temporal/incident-workflows.ts'
import type { RetryWorkflows } from '../temporal/retry-workflows.ts'
import type { Starter } from './starter.ts'
import { SWEEP_AFTER_MS } from './timing.ts'

/** Looks after what may have lost its keeper. */
export type Sweep = {
  /** One pass; returns how many rows were looked at. */
  runOnce(): Promise<number>
  start(): void
  stop(): Promise<void>
  /** A pass has not come to its end for half a minute. */
  isStalled(): boolean
}

const EVERY_MS = 1_000

/** A pass takes a second or two; what it waits for has a shorter limit. */
const STALLED_AFTER_MS = 30_000

/** Rows of each kind in one pass; after a full pass the next follows at once. */
const LIMIT = 200

/** An incident that is still owed a look after that is told once more. */
const TELL_AGAIN_MS = 60_000

/** Calls to the engine under way at once. */
const CONCURRENT_CALLS = 8

type SweepDependencies = {
  dataSource: DataSource
  workflows: DeliveryWorkflows
  retryWorkflows: RetryWorkflows
  incidentWorkflows: IncidentWorkflows
  starter: Starter
  logger: Logger
  metrics: Metrics
  processId: string
  /** How long deliveries are held that the starter is to begin with. */
  leaseMs: number
}

/**
 * Deliveries whose owner died or that wait because the engine was away are started; those overdue by two minutes
 * whose workflow is gone (terminated by hand, engine data lost) are started again from the recorded attempt; workflows
 * that were not told of a person's retry or of a stop are told; retry jobs without a workflow get one; incidents that
 * are owed a look get it.
 */
export function createSweep(dependencies: SweepDependencies): Sweep {
  const { dataSource, workflows, retryWorkflows, incidentWorkflows, starter, logger, metrics, leaseMs } =
    dependencies
  const owner = dependencies.processId
  const limit = pLimit(CONCURRENT_CALLS)
  let timer: NodeJS.Timeout | null = null
  let running: Promise<void> = Promise.resolve()
  // Incidents told lately: their row is settled by the workflow's look, which may take its time.
  const toldAtMs = new Map<string, number>()
  let stopped = true
  let passBeganAtMs: number | null = null

  async function runOnce(): Promise<number> {
    const counts = [await sweepDeliveries(), await sweepStopped(), await sweepJobs(), await sweepIncidents()]
    return Math.max(...counts)
  }

  async function sweepDeliveries(): Promise<number> {
    // What is taken and cannot be started would only be held from other processes.
    if (starter.isBusy()) return 0
    const taken = await takeForSweep(dataSource, { owner, leaseMs, limit: LIMIT })
    metrics.sweepTook('delivery', taken.length)
    const isNew = ({ started, asked, attempts }: SweptDelivery): boolean =>
      !started && !asked && attempts === 0
    starter.start(taken.filter(isNew))
    const known = taken.filter((delivery) => !isNew(delivery))
    const kept = await succeeding(known, keep)
    if (kept.length > 0) {
      await markStarted(dataSource, ids(kept), SWEEP_AFTER_MS)
      await postponeSweep(dataSource, ids(kept), SWEEP_AFTER_MS)
    }
    return taken.length
  }

  /** Makes sure that a delivery has a workflow, and that it knows what a person wants. */
  async function keep(delivery: SweptDelivery): Promise<void> {
    const { deliveryId, attempts, nextAttemptAt } = delivery
    if (delivery.asked) return workflows.wake(delivery, attempts)
    if (await workflows.isRunning(deliveryId)) return
    const next = { number: attempts + 1, dueAtMs: nextAttemptAt?.getTime() ?? null }
    await workflows.start(delivery, next, { again: true })
    logger.warn({ event: 'sweep.restarted', deliveryId, attempt: next.number }, 'sweep.restarted')
  }

  async function sweepStopped(): Promise<number> {
    const taken = await takeToTell(dataSource, LIMIT)
    metrics.sweepTook('stopped', taken.length)
    const told = await succeeding(taken, ({ deliveryId }) => workflows.stop(deliveryId))
    if (told.length > 0) await markTold(dataSource, ids(told))
    return taken.length
  }

  async function sweepJobs(): Promise<number> {
    const taken = await takeJobsForSweep(dataSource, LIMIT)
    metrics.sweepTook('retry_job', taken.length)
    await succeeding(taken, (job) => retryWorkflows.start(job))
    return taken.length
  }

  async function sweepIncidents(): Promise<number> {
    for (const [id, atMs] of toldAtMs) if (performance.now() - atMs > TELL_AGAIN_MS) toldAtMs.delete(id)
    const owed = await findIncidentsToTell(dataSource, LIMIT, [...toldAtMs.keys()])
    metrics.sweepTook('incident', owed.length)
    const told = await succeeding(owed, (incident) => incidentWorkflows.tell(incident))
    for (const { incidentId } of told) toldAtMs.set(incidentId, performance.now())
    return owed.length
  }

  /** Those for which the engine did what was asked; the others come again with a later pass. */
  async function succeeding<Row extends object>(
    rows: Row[],
    ask: (row: Row) => Promise<void>,
  ): Promise<Row[]> {
    let away = false
    const answers = await limit.map(rows, async (row) => {
      if (away) return []
      try {
        await ask(row)
        return [row]
      } catch (error) {
        // One row tells that the engine is away; the others of this pass need not find it out.
        if (isEngineAway(error)) away = true
        logger.warn({ event: 'sweep.refused', ...forLog(row), err: error }, 'sweep.refused')
        return []
      }
    })
    return answers.flat()
  }

  async function pass(): Promise<void> {
    let pauseMs = EVERY_MS
    const startedAt = performance.now()
    passBeganAtMs = startedAt
    try {
      if ((await runOnce()) === LIMIT) pauseMs = 0
      metrics.sweepPassed(performance.now() - startedAt)
    } catch (error) {
      const fields = { event: 'sweep.failed', err: error }
      if (isDatabaseAway(error)) logger.warn(fields, 'sweep.failed')
      else logger.error(fields, 'sweep.failed')
    }
    passBeganAtMs = null
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
      metrics.sweepStarted()
      schedule(0)
    },
    async stop() {
      stopped = true
      if (timer !== null) clearTimeout(timer)
      await running
    },
    isStalled: () => passBeganAtMs !== null && performance.now() - passBeganAtMs > STALLED_AFTER_MS,
  }
}

/** A URL may hold what only its owner should know. */
function forLog(row: object): object {
  return Object.fromEntries(Object.entries(row).filter(([name]) => name !== 'url'))
}

function ids(deliveries: readonly { deliveryId: string }[]): string[] {
  return deliveries.map(({ deliveryId }) => deliveryId)
}

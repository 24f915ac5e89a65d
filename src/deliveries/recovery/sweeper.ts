import type { DataSource } from 'typeorm'
import { transactLonger } from '../../db/connection/database-client.ts'
import { takeErasuresForSweep } from '../../db/queries/erasures.ts'
import { findIncidentsToSignal, sweepIncidentsAgain } from '../../db/queries/incidents.ts'
import { takeJobsForSweep } from '../../db/queries/retry-jobs.ts'
import {
  incidentWorkflowId,
  type IncidentWorkflows,
  erasureWorkflowId,
  type ErasureWorkflows,
  retryWorkflowId,
  type RetryWorkflows,
} from '../../temporal/workflows.ts'
import type { WorkflowProgress } from '../../temporal/workflow-progress.ts'
import { callForEach } from '../../temporal/calls.ts'
import { createPollLoop } from '../../poll-loop.ts'
import {
  createDeliveryRecovery,
  RETRY_DELAY_MS,
  type RecoveryDependencies,
  type Taken,
} from './recover-deliveries.ts'
import { sweepOthers } from '../../db/queries/due-deliveries.ts'
import { sweepDeliveries } from '../protocol/sweep.ts'

/** Recovers deliveries, retry jobs, incidents and erasures whose workflow is gone. */
export type Sweeper = {
  /** Runs one pass; returns how many rows the part with the most rows took. */
  runOnce(): Promise<number>
  start(): void
  stop(): Promise<void>
  /** True when a pass has not ended for STALLED_TIMEOUT_MS. */
  isStalled(): boolean
}

const INTERVAL_MS = 1_000

/** A pass takes a second or two, and all of its calls have shorter time limits. */
const STALLED_TIMEOUT_MS = 30_000

/** Retry jobs, and erasures, in one pass; after a full pass the next follows at once. */
const TAKE_LIMIT = 200

/** Incidents in one pass: where hundreds of endpoints hang, hundreds begin together, and none is urgent. */
const INCIDENT_LIMIT = 10

/** An incident whose workflow has not evaluated it by then is signalled again. */
const SIGNAL_TTL_MS = 60_000

const MAX_CONCURRENT_CALLS = 4

type SweeperDependencies = RecoveryDependencies & {
  dataSource: DataSource
  /** False while Temporal is unavailable, as far as this process knows. */
  isServing: () => boolean
  retryWorkflows: RetryWorkflows
  incidentWorkflows: IncidentWorkflows
  erasureWorkflows: ErasureWorkflows
}

/**
 * Builds the sweeper. One pass of bounded duration continues overdue deliveries whose workflow is gone or stuck in a new
 * workflow; wakes workflows for a retry or an end that they may not know of; and starts or signals the workflows of retry
 * jobs, incidents and erasures. All of it is left to other processes while this one cannot reach Temporal.
 */
export function createSweeper(dependencies: SweeperDependencies): Sweeper {
  const { dataSource, retryWorkflows, incidentWorkflows, erasureWorkflows } = dependencies
  const { terminateIfStuck, logger, metrics } = dependencies
  const parts = [
    ...createDeliveryRecovery(dependencies),
    () => restart('retry_job', takeJobsForSweep, ({ jobId }) => retryWorkflowId(jobId), retryWorkflows),
    sweepIncidents,
    () =>
      restart(
        'erasure',
        takeErasuresForSweep,
        (of) => erasureWorkflowId(of.organisationId),
        erasureWorkflows,
      ),
  ]
  // Incidents signalled lately: their workflow may take a while to update the row.
  const signalledAtMs = new Map<string, number>()

  async function sweepAll(): Promise<Taken> {
    if (!dependencies.isServing()) return { count: 0, isMoreWaiting: false }
    // A part that fails does not end the others.
    const ended = await Promise.allSettled(parts.map((part) => part()))
    for (const end of ended) if (end.status === 'rejected') throw end.reason
    const taken = ended.flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []))
    return {
      count: Math.max(0, ...taken.map(({ count }) => count)),
      isMoreWaiting: taken.some(({ isMoreWaiting }) => isMoreWaiting),
    }
  }

  /** Starts workflows again that are gone or stuck. */
  async function restart<Row extends object>(
    what: 'retry_job' | 'erasure',
    take: (db: DataSource, limit: number) => Promise<Row[]>,
    workflowIdOf: (row: Row) => string,
    workflows: { start(row: Row): Promise<unknown> },
  ): Promise<Taken> {
    const taken = await take(dataSource, TAKE_LIMIT)
    metrics.sweepTook(what, taken.length)
    await callAll(taken, async (row) => {
      await replaceIfStuck(workflowIdOf(row))
      await workflows.start(row)
    })
    return { count: taken.length, isMoreWaiting: taken.length === TAKE_LIMIT }
  }

  async function sweepIncidents(): Promise<Taken> {
    for (const [id, atMs] of signalledAtMs)
      if (performance.now() - atMs > SIGNAL_TTL_MS) signalledAtMs.delete(id)
    const toSignal = await findIncidentsToSignal(dataSource, INCIDENT_LIMIT, [...signalledAtMs.keys()])
    metrics.sweepTook('incident', toSignal.length)
    const { done, left } = await callAll(toSignal, async (incident) => {
      const { state } = await replaceIfStuck(incidentWorkflowId(incident.webhookId, incident.incidentId))
      // Every signal would be one more event of its history; the row tells it everything when it goes on.
      if (state !== 'paused') await incidentWorkflows.signal(incident)
    })
    for (const { row } of done) signalledAtMs.set(row.incidentId, performance.now())
    const failed = left.map(({ incidentId }) => incidentId)
    // Those behind them are first in the next pass.
    if (failed.length > 0) await sweepIncidentsAgain(dataSource, failed, RETRY_DELAY_MS)
    return { count: toSignal.length, isMoreWaiting: false }
  }

  async function replaceIfStuck(workflowId: string): Promise<WorkflowProgress> {
    const progress = await terminateIfStuck(workflowId)
    if (progress.state !== 'stuck') return progress
    const { cause, taskAttempts } = progress
    metrics.workflowRecovered('stuck')
    logger.error({ event: 'sweep.replaced_workflow', workflowId, cause, taskAttempts })
    return progress
  }

  function callAll<Row extends object>(rows: readonly Row[], call: (row: Row) => Promise<void>) {
    return callForEach(rows, call, {
      concurrency: MAX_CONCURRENT_CALLS,
      onFailed: (row, error) => logger.warn({ event: 'sweep.call_refused', ...withoutUrl(row), err: error }),
    })
  }

  const loop = createPollLoop({
    intervalMs: INTERVAL_MS,
    async run() {
      const startedAtMs = performance.now()
      const { isMoreWaiting } = await sweepAll()
      metrics.sweepPassed(performance.now() - startedAtMs)
      return isMoreWaiting
    },
    event: 'sweep.failed',
    logger,
  })

  return {
    runOnce: async () => (await sweepAll()).count,
    start() {
      metrics.sweepStarted()
      loop.start()
    },
    stop: () => loop.stop(),
    isStalled: () => (loop.runningForMs() ?? 0) > STALLED_TIMEOUT_MS,
  }
}

/** The path of a URL may be a credential. */
function withoutUrl(row: object): object {
  return Object.fromEntries(Object.entries(row).filter(([name]) => name !== 'url'))
}

/** Makes everything due for the sweeper that had a workflow: Temporal has lost its data, and with it all workflows. */
export async function sweepEverything(dataSource: DataSource): Promise<void> {
  await transactLonger(dataSource, sweepDeliveries)
  await sweepOthers(dataSource)
}

import { findIncidentsToTell } from '../../db/queries/incidents.ts'
import { markTold, takeToTell } from '../../db/queries/interventions.ts'
import { giveBack } from '../../db/queries/recovery.ts'
import { takeJobsForSweep } from '../../db/queries/retry-jobs.ts'
import { incidentWorkflowId, type IncidentWorkflows } from '../../temporal/incident-workflows.ts'
import { retryWorkflowId, type RetryWorkflows } from '../../temporal/retry-workflows.ts'
import { callForEach, type CallResults } from './bounded-calls.ts'
import { createPollLoop } from './poll-loop.ts'
import { createDeliveryRecovery, type RecoveryDependencies, type Taken } from './recover-deliveries.ts'

/** Recovers what may have lost its process or its workflow. */
export type Sweeper = {
  /** One pass; returns how many rows it took, of the kind of which it took most. */
  runOnce(): Promise<number>
  start(): void
  stop(): Promise<void>
  /** A pass has not come to its end for half a minute. */
  isStalled(): boolean
}

const INTERVAL_MS = 1_000

/** A pass takes a second or two; what it waits for has a shorter limit. */
const STALLED_AFTER_MS = 30_000

/** Rows of each other kind in one pass; after a full pass the next follows at once. */
const LIMIT = 200

/** Incidents of one pass. There is no hurry, and hundreds begin at once where hundreds of endpoints hang. */
const INCIDENT_LIMIT = 10

/** An incident whose workflow has not evaluated it after that is signalled once more. */
const TELL_AGAIN_MS = 60_000

/** Calls to Temporal in flight at once, of each kind; and how long those of one pass may take. */
const CONCURRENT_CALLS = 4
const CALLS_TIMEOUT_MS = 8_000

/** Workflows that could not be stopped are called so much later, by any process. */
const GIVE_BACK_DELAY_MS = 2_000

type SweeperDependencies = RecoveryDependencies & {
  retryWorkflows: RetryWorkflows
  incidentWorkflows: IncidentWorkflows
}

/**
 * In passes of bounded time, however busy this process is: deliveries whose process died or that wait because Temporal
 * was away are started; overdue ones whose workflow is gone or stuck go on in a new one, from the recorded attempt;
 * workflows are woken for a retry or a stop that they may not know of; retry jobs and incidents get their workflow back.
 * What needs Temporal is left to others while this process cannot reach it.
 */
export function createSweeper(dependencies: SweeperDependencies): Sweeper {
  const { dataSource, workflows, retryWorkflows, incidentWorkflows, terminateIfStuck, isServing } =
    dependencies
  const { logger, metrics } = dependencies
  const deliveries = createDeliveryRecovery(dependencies)
  // Incidents signalled lately: their workflow updates the row, which may take its time.
  const toldAtMs = new Map<string, number>()

  async function sweepAll(): Promise<Taken> {
    const parts = [
      () => deliveries.startUnstarted(),
      () => deliveries.recoverOverdue(),
      ...(isServing() ? [sweepStopped, sweepJobs, sweepIncidents] : []),
    ]
    // A part that fails leaves the others their pass.
    const ended = await Promise.allSettled(parts.map((part) => part()))
    for (const end of ended) if (end.status === 'rejected') throw end.reason
    const taken = ended.flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []))
    return {
      count: Math.max(0, ...taken.map(({ count }) => count)),
      isMoreWaiting: taken.some(({ isMoreWaiting }) => isMoreWaiting),
    }
  }

  async function sweepStopped(): Promise<Taken> {
    const taken = await takeToTell(dataSource, LIMIT)
    metrics.sweepTook('stopped', taken.length)
    const { answered, left } = await calling(taken, ({ deliveryId }) => workflows.stop(deliveryId))
    if (answered.length > 0)
      await markTold(
        dataSource,
        answered.map(({ row }) => row.deliveryId),
      )
    if (left.length > 0)
      await giveBack(
        dataSource,
        left.map(({ deliveryId }) => deliveryId),
        GIVE_BACK_DELAY_MS,
      )
    return takenOf(taken)
  }

  async function sweepJobs(): Promise<Taken> {
    const taken = await takeJobsForSweep(dataSource, LIMIT)
    metrics.sweepTook('retry_job', taken.length)
    await calling(taken, async (job) => {
      await endIfStuck(retryWorkflowId(job.jobId))
      await retryWorkflows.start(job)
    })
    return takenOf(taken)
  }

  async function sweepIncidents(): Promise<Taken> {
    for (const [id, atMs] of toldAtMs) if (performance.now() - atMs > TELL_AGAIN_MS) toldAtMs.delete(id)
    const owed = await findIncidentsToTell(dataSource, INCIDENT_LIMIT, [...toldAtMs.keys()])
    metrics.sweepTook('incident', owed.length)
    const { answered } = await calling(owed, async (incident) => {
      await endIfStuck(incidentWorkflowId(incident.webhookId, incident.incidentId))
      await incidentWorkflows.tell(incident)
    })
    for (const { row } of answered) toldAtMs.set(row.incidentId, performance.now())
    return { count: owed.length, isMoreWaiting: false }
  }

  async function endIfStuck(workflowId: string): Promise<void> {
    const progress = await terminateIfStuck(workflowId)
    if (progress.state !== 'stuck') return
    const { cause, taskAttempts } = progress
    metrics.workflowRecovered('stuck')
    const fields = { event: 'sweep.replaced_workflow', workflowId, cause, taskAttempts }
    logger.error(fields, 'sweep.replaced_workflow')
  }

  function calling<Row extends object, Answer>(
    rows: readonly Row[],
    call: (row: Row) => Promise<Answer>,
  ): Promise<CallResults<Row, Answer>> {
    return callForEach(rows, call, {
      concurrency: CONCURRENT_CALLS,
      timeoutMs: CALLS_TIMEOUT_MS,
      onRefused: (row, error) =>
        logger.warn({ event: 'sweep.refused', ...forLog(row), err: error }, 'sweep.refused'),
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
    isStalled: () => (loop.runningForMs() ?? 0) > STALLED_AFTER_MS,
  }
}

function takenOf(rows: readonly object[]): Taken {
  return { count: rows.length, isMoreWaiting: rows.length === LIMIT }
}

/** A URL may hold what only its owner should know. */
function forLog(row: object): object {
  return Object.fromEntries(Object.entries(row).filter(([name]) => name !== 'url'))
}

import type { Registry } from 'prom-client'
import type { Backlog } from '../../db/queries/backlog.ts'
import type { PoolStatus } from '../../db/connection/data-source.ts'
import type { DispatcherLoad } from '../../deliveries/dispatch/dispatcher.ts'
import type { TemporalService } from '../../temporal/temporal-service.ts'
import { createDefine, type Define } from '../../observability/metrics/define.ts'
import type { ReadBacklog } from './backlog-reader.ts'
import type { WorkerLoad } from '../../temporal/worker.ts'

/** The sources of a scrape. Each returns within about two seconds, and none throws. */
export type Sources = {
  readBacklog: ReadBacklog<Backlog>
  /** Whether the database answers and takes writes. */
  isDatabaseUp: () => Promise<boolean>
  pool: () => PoolStatus
  dispatcher: () => DispatcherLoad
  temporal: Pick<TemporalService, 'isUp' | 'workerLoad'>
  /** Address of the metrics of Temporal's native core; null when it serves none. */
  coreMetricsUrl: string | null
}

/** The core runs in this process, so a missing answer is not worth waiting for. */
const CORE_TIMEOUT_MS = 500

/** Returns all metrics of `registry` and `sources` in Prometheus' text format. */
export function createScrape(registry: Registry, sources: Sources): () => Promise<string> {
  const show = createGauges(createDefine(registry))
  return async () => {
    const [backlog, isDatabaseUp, isTemporalUp, coreText] = await Promise.all([
      sources.readBacklog(),
      sources.isDatabaseUp(),
      sources.temporal.isUp(),
      sources.coreMetricsUrl === null ? '' : readText(sources.coreMetricsUrl),
    ])
    const worker = sources.temporal.workerLoad()
    const [pool, dispatcher] = [sources.pool(), sources.dispatcher()]
    show({ backlog, isDatabaseUp, isTemporalUp, worker, pool, dispatcher })
    return `${await registry.metrics()}${coreText}`
  }
}

/** Returns the empty string when there is no answer: the other metrics are useful without it. */
async function readText(url: string): Promise<string> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(CORE_TIMEOUT_MS) })
    return response.ok ? await response.text() : ''
  } catch {
    return ''
  }
}

/** The state of the process at one scrape. */
export type Snapshot = {
  /** Null while it is not known. */
  backlog: Backlog | null
  isDatabaseUp: boolean
  pool: PoolStatus
  dispatcher: DispatcherLoad
  isTemporalUp: boolean
  /** Null in a process without a worker. */
  worker: WorkerLoad | null
}

/** Defines the gauges that are read at a scrape. What is unknown is left out, not 0. */
export function createGauges(define: Define): (snapshot: Snapshot) => void {
  const showBacklog = createBacklogGauges(define)
  const showWorker = createWorkerGauges(define)
  const pool = define.gauge(
    'database_pool',
    'Database connections: total, idle, and requests that wait for one',
    ['state'],
  )
  const poolSize = define.gauge('database_pool_size', 'Maximum number of connections of the pool')
  const dispatcherQueued = define.gauge(
    'dispatcher_queued',
    'Deliveries that the dispatcher holds and has not begun',
  )
  const workflowStartsInFlight = define.gauge('workflow_starts_in_flight', 'Workflow starts in flight')
  const attempting = define.gauge('inline_attempts_in_flight', 'Inline attempts in flight')
  const isDatabaseUp = define.gauge('database_up', '1 when the database answers and takes writes')
  const isTemporalUp = define.gauge('temporal_up', '1 when Temporal answers this process')

  return (snapshot) => {
    showBacklog(snapshot.backlog)
    showWorker(snapshot.worker)
    const { total, idle, waiting, size } = snapshot.pool
    pool.set({ state: 'total' }, total)
    pool.set({ state: 'idle' }, idle)
    pool.set({ state: 'waiting' }, waiting)
    poolSize.set(size)
    dispatcherQueued.set(snapshot.dispatcher.queued)
    workflowStartsInFlight.set(snapshot.dispatcher.startsInFlight)
    attempting.set(snapshot.dispatcher.inlineInFlight)
    isDatabaseUp.set(snapshot.isDatabaseUp ? 1 : 0)
    isTemporalUp.set(snapshot.isTemporalUp ? 1 : 0)
  }
}

function createBacklogGauges(define: Define): (backlog: Backlog | null) => void {
  const deliveries = define.gauge(
    'deliveries',
    'Backlog: deliveries that are pending, in_progress, waiting or failed',
    ['state'],
  )
  const oldestPending = define.gauge(
    'oldest_pending_age_seconds',
    'Backlog: age of the oldest delivery without an attempt that is not paused; busy while it waits for its endpoint, else idle',
    ['webhook'],
  )
  const overdue = define.gauge(
    'overdue_deliveries',
    'Backlog: deliveries late by a minute or more, which wait for their endpoints (busy) or are stuck (idle)',
    ['webhook'],
  )
  const paused = define.gauge(
    'paused_deliveries',
    'Backlog: overdue deliveries whose workflow is paused in Temporal; they are not counted as overdue',
  )
  const owed = define.gauge(
    'owed_workflows',
    'Backlog: deliveries that were attempted without a workflow, which follows',
  )
  const oldestOwed = define.gauge(
    'oldest_owed_workflow_age_seconds',
    'Backlog: time since the oldest delivery ended whose workflow follows',
  )
  const incidents = define.gauge('incidents_open', 'Backlog: webhooks with an open incident')

  return (backlog) => {
    if (backlog === null) {
      for (const gauge of [deliveries, oldestPending, overdue]) gauge.reset()
      for (const gauge of [paused, owed, oldestOwed, incidents]) gauge.remove()
      return
    }
    deliveries.set({ state: 'pending' }, backlog.pending)
    deliveries.set({ state: 'in_progress' }, backlog.inProgress)
    deliveries.set({ state: 'waiting' }, backlog.waiting)
    deliveries.set({ state: 'failed' }, backlog.failed)
    for (const webhook of ['busy', 'idle'] as const) {
      oldestPending.set({ webhook }, backlog.oldestPendingAge[webhook])
      overdue.set({ webhook }, backlog.overdue[webhook])
    }
    paused.set(backlog.paused)
    owed.set(backlog.owedWorkflows)
    oldestOwed.set(backlog.oldestOwedAge)
    incidents.set(backlog.openIncidents)
  }
}

function createWorkerGauges(define: Define): (worker: WorkerLoad | null) => void {
  const running = define.gauge('worker_running', '1 while the worker takes tasks; only in a worker')
  const activities = define.gauge(
    'worker_activities',
    'Activities in progress: first, retry (with those that wait until they are due), slow',
    ['queue'],
  )
  const tasks = define.gauge('worker_workflow_tasks', 'Workflow tasks in progress')
  const cached = define.gauge('worker_cached_workflows', 'Workflows kept in memory')

  return (worker) => {
    if (worker === null) {
      activities.reset()
      for (const gauge of [running, tasks, cached]) gauge.remove()
      return
    }
    running.set(worker.isRunning ? 1 : 0)
    for (const [queue, count] of Object.entries(worker.activities)) activities.set({ queue }, count)
    tasks.set(worker.workflowTasks)
    cached.set(worker.cachedWorkflows)
  }
}

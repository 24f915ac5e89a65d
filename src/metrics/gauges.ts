import type { Backlog } from '../db/queries/backlog.ts'
import type { PoolStatus } from '../db/pool-status.ts'
import type { DispatcherLoad } from '../deliveries/dispatch/dispatcher.ts'
import type { WorkerLoad } from '../temporal/worker.ts'
import type { Define } from './define.ts'

/** How things stand at one scrape. */
export type Snapshot = {
  /** Null when the database could not be asked. */
  backlog: Backlog | null
  pool: PoolStatus
  dispatcher: DispatcherLoad
  engineUp: boolean
  /** Null in a process without a worker. */
  worker: WorkerLoad | null
}

/** What is not counted where it happens but looked at when somebody asks. What is not known is left out, not 0. */
export function createGauges(define: Define): (snapshot: Snapshot) => void {
  const showBacklog = createBacklogGauges(define)
  const showWorker = createWorkerGauges(define)
  const pool = define.gauge('database_pool', 'Connections to the database: all, idle, and waited for', [
    'state',
  ])
  const poolSize = define.gauge('database_pool_size', 'Connections that the pool opens at most')
  const starterWaiting = define.gauge('starter_waiting', 'Deliveries that wait to be begun with')
  const starterInFlight = define.gauge('starter_in_flight', 'Workflow starts under way')
  const attempting = define.gauge(
    'starter_attempts_in_flight',
    'First attempts that the dispatcher itself makes',
  )
  const engineUp = define.gauge('engine_up', '1 when Temporal answers this process')

  return (snapshot) => {
    showBacklog(snapshot.backlog)
    showWorker(snapshot.worker)
    const { total, idle, waiting, size } = snapshot.pool
    pool.set({ state: 'total' }, total)
    pool.set({ state: 'idle' }, idle)
    pool.set({ state: 'waiting' }, waiting)
    poolSize.set(size)
    starterWaiting.set(snapshot.dispatcher.waiting)
    starterInFlight.set(snapshot.dispatcher.inFlight)
    attempting.set(snapshot.dispatcher.attempting)
    engineUp.set(snapshot.engineUp ? 1 : 0)
  }
}

function createBacklogGauges(define: Define): (backlog: Backlog | null) => void {
  const up = define.gauge('database_up', '1 when the backlog could be counted')
  const deliveries = define.gauge('deliveries', 'Deliveries that are not at a good end, by state', ['state'])
  const oldestPending = define.gauge(
    'oldest_pending_age_seconds',
    'Age of the oldest delivery without an attempt, by whether others to its webhook are under way',
    ['webhook'],
  )
  const overdue = define.gauge(
    'overdue_deliveries',
    'Deliveries late by a minute or more, by whether others to their webhook are under way',
    ['webhook'],
  )
  const incidents = define.gauge('incidents_open', 'Webhooks with deliveries that fail')

  return (backlog) => {
    up.set(backlog === null ? 0 : 1)
    if (backlog === null) {
      for (const gauge of [deliveries, oldestPending, overdue]) gauge.reset()
      incidents.remove()
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
    incidents.set(backlog.openIncidents)
  }
}

function createWorkerGauges(define: Define): (worker: WorkerLoad | null) => void {
  const running = define.gauge('worker_running', '1 while the worker takes tasks; nothing without a worker')
  const activities = define.gauge(
    'worker_activities',
    'Activities under way, by task queue: first, retry (those on hold included), slow',
    ['queue'],
  )
  const tasks = define.gauge('worker_workflow_tasks', 'Workflow tasks under way')
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

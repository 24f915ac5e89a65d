import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Worker, type NativeConnection, type WorkerOptions } from '@temporalio/worker'
import type { Activities } from '../../activities/index.ts'
import { apartQueue } from '../domain/task-queues.ts'

export type WorkerSettings = {
  namespace: string
  taskQueue: string
  /** Activities under way at once, first attempts of healthy webhooks above all. */
  activitySlots: number
  /** Attempts under way at once that may take long (`apartQueue`). */
  apartSlots: number
  /** Workflow tasks under way at once. */
  workflowTaskSlots: number
  /** Long polls held open for each kind of task on each task queue. */
  pollers: number
  /** Workflows kept in memory; one that is not is replayed when its timer fires. */
  cachedWorkflows: number
  /** How long attempts under way may still take when the worker is told to stop. */
  shutdownGraceMs: number
}

/** After the grace an attempt is told to give up, and this much later the worker ends without it. */
const FORCE_AFTER_GRACE_MS = 2_000

/** What works in one process: on the task queue our workflows and activities, on the one beside it attempts only. */
export type Workers = {
  /** Runs until it is told to stop. Rejects when one of the workers ends by itself, after the other has ended too. */
  run(): Promise<void>
  shutdown(): void
  /** Lets go of the connection, instead of `run`. */
  discard(): Promise<void>
  load(): WorkerLoad
}

/** How a worker is made: `Worker.create`. */
export type CreateWorker = (options: WorkerOptions) => Promise<Worker>

/** The workers of the task queue and of the one for attempts that may take long, on the client's connection. */
export async function createWorkers(
  connection: NativeConnection,
  settings: WorkerSettings,
  activities: Activities,
  createWorker: CreateWorker = (options) => Worker.create(options),
): Promise<Workers> {
  const { namespace, taskQueue, activitySlots, apartSlots, workflowTaskSlots, pollers, shutdownGraceMs } =
    settings
  const common = {
    connection,
    namespace,
    shutdownGraceTime: shutdownGraceMs,
    shutdownForceTime: shutdownGraceMs + FORCE_AFTER_GRACE_MS,
  }
  const main = await createWorker({
    ...common,
    taskQueue,
    activities,
    ...workflowCode(),
    maxConcurrentActivityTaskExecutions: activitySlots,
    maxConcurrentWorkflowTaskExecutions: workflowTaskSlots,
    maxConcurrentWorkflowTaskPolls: Math.min(pollers, workflowTaskSlots),
    maxConcurrentActivityTaskPolls: Math.min(pollers, activitySlots),
    maxCachedWorkflows: settings.cachedWorkflows,
  })
  const apart = await createWorker({
    ...common,
    taskQueue: apartQueue(taskQueue),
    activities: { makeAttempt: activities.makeAttempt },
    maxConcurrentActivityTaskExecutions: apartSlots,
    maxConcurrentActivityTaskPolls: Math.min(pollers, apartSlots),
  }).catch(async (error: unknown) => {
    await discard(main)
    throw error
  })
  const both = [main, apart]
  const shutdown = (): void => {
    for (const worker of both) if (worker.getState() === 'RUNNING') worker.shutdown()
  }
  return {
    async run() {
      const ended = await Promise.allSettled(both.map((worker) => worker.run().finally(shutdown)))
      for (const end of ended) if (end.status === 'rejected') throw end.reason
    },
    shutdown,
    async discard() {
      await Promise.all(both.map(discard))
    },
    load: () => loadOf(main, apart),
  }
}

/** A worker that was made holds its connection until it has run, at least for a moment. */
function discard(worker: Worker): Promise<void> {
  return worker.runUntil(Promise.resolve())
}

/**
 * What the workers of a process do at the moment. `isRunning`: they take tasks. `apartActivities`: attempts that may
 * take long.
 */
export type WorkerLoad = {
  isRunning: boolean
  activities: number
  apartActivities: number
  workflowTasks: number
  cachedWorkflows: number
}

/** Workers that are not there yet, or ended by themselves and are to be made again. */
export const NO_LOAD: WorkerLoad = {
  isRunning: false,
  activities: 0,
  apartActivities: 0,
  workflowTasks: 0,
  cachedWorkflows: 0,
}

function loadOf(main: Worker, apart: Worker): WorkerLoad {
  const status = main.getStatus()
  const statusApart = apart.getStatus()
  return {
    isRunning: status.runState === 'RUNNING' && statusApart.runState === 'RUNNING',
    activities: status.numInFlightActivities,
    apartActivities: statusApart.numInFlightActivities,
    workflowTasks: status.numInFlightWorkflowActivations,
    cachedWorkflows: status.numCachedWorkflows,
  }
}

/** The bundle that `npm run build` left beside the compiled code, or the sources themselves. */
function workflowCode(): { workflowBundle: { codePath: string } } | { workflowsPath: string } {
  const bundle = fileURLToPath(new URL('../../workflow-bundle.js', import.meta.url))
  if (existsSync(bundle)) return { workflowBundle: { codePath: bundle } }
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  return { workflowsPath: fileURLToPath(new URL(`../../workflows/index.${extension}`, import.meta.url)) }
}

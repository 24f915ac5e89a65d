import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Worker, type NativeConnection } from '@temporalio/worker'
import type { Activities } from '../../activities/index.ts'

export type WorkerSettings = {
  namespace: string
  taskQueue: string
  /** Attempts under way at once. */
  activitySlots: number
  /** Workflow tasks under way at once. */
  workflowTaskSlots: number
  /** Workflows kept in memory; one that is not is replayed when its timer fires. */
  cachedWorkflows: number
  /** How long attempts under way may still take when the worker is told to stop. */
  shutdownGraceMs: number
}

/** Long polls held open for each kind of task; ten are the SDK's own default, enough for a few hundred tasks a second. */
const POLLS = 10

/** After the grace an attempt is told to give up, and this much later the worker ends without it. */
const FORCE_AFTER_GRACE_MS = 2_000

/** A worker of the task queue with our workflows and the given activities, on the client's connection. */
export async function createWorker(
  connection: NativeConnection,
  settings: WorkerSettings,
  activities: Activities,
): Promise<Worker> {
  return Worker.create({
    connection,
    namespace: settings.namespace,
    taskQueue: settings.taskQueue,
    activities,
    ...workflowCode(),
    maxConcurrentActivityTaskExecutions: settings.activitySlots,
    maxConcurrentWorkflowTaskExecutions: settings.workflowTaskSlots,
    maxConcurrentWorkflowTaskPolls: Math.min(POLLS, settings.workflowTaskSlots),
    maxConcurrentActivityTaskPolls: Math.min(POLLS, settings.activitySlots),
    maxCachedWorkflows: settings.cachedWorkflows,
    shutdownGraceTime: settings.shutdownGraceMs,
    shutdownForceTime: settings.shutdownGraceMs + FORCE_AFTER_GRACE_MS,
  })
}

/** What a worker does at the moment. `isRunning`: it takes tasks. */
export type WorkerLoad = {
  isRunning: boolean
  activities: number
  workflowTasks: number
  cachedWorkflows: number
}

/** Null stands for a worker that is not there yet, or ended by itself and is to be made again. */
export function workerLoad(worker: Worker | null): WorkerLoad {
  if (worker === null) return { isRunning: false, activities: 0, workflowTasks: 0, cachedWorkflows: 0 }
  const { runState, numInFlightActivities, numInFlightWorkflowActivations, numCachedWorkflows } =
    worker.getStatus()
  return {
    isRunning: runState === 'RUNNING',
    activities: numInFlightActivities,
    workflowTasks: numInFlightWorkflowActivations,
    cachedWorkflows: numCachedWorkflows,
  }
}

/** The bundle that `npm run build` left beside the compiled code, or the sources themselves. */
function workflowCode(): { workflowBundle: { codePath: string } } | { workflowsPath: string } {
  const bundle = fileURLToPath(new URL('../../workflow-bundle.js', import.meta.url))
  if (existsSync(bundle)) return { workflowBundle: { codePath: bundle } }
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  return { workflowsPath: fileURLToPath(new URL(`../../workflows/index.${extension}`, import.meta.url)) }
}

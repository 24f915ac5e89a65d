import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { WorkerDeploymentVersion } from '@temporalio/common'
import {
  Worker,
  type NativeConnection,
  type WorkerDeploymentOptions,
  type WorkerOptions,
} from '@temporalio/worker'
import type { Activities } from '../../activities/index.ts'
import { attemptQueue, type AttemptQueue } from '../domain/attempt-outcome.ts'

export type WorkerSettings = {
  namespace: string
  taskQueue: string
  /** Time for attempts in flight when the worker shuts down. */
  shutdownGraceMs: number
  /**
   * The version of a worker deployment that these workers are: they get workflows once that version is current, and those
   * that run then move to it at their next task. Null: workers without versions.
   */
  version: WorkerDeploymentVersion | null
}

/**
 * Attempts in flight at once: first ones at fast endpoints; retries at fast endpoints, with those that wait until they
 * are due; and those at endpoints that are slow or never answered.
 */
const ACTIVITY_SLOTS: Readonly<Record<AttemptQueue, number>> = { first: 200, retry: 1_000, slow: 1_000 }

/** Workflow tasks in flight at once. */
export const WORKFLOW_TASK_SLOTS = 100

/** Workflows in memory; others are replayed when their timer fires. */
export const MAX_CACHED_WORKFLOWS = 2_000

/** Long polls open for each kind of task on each task queue. */
const POLLERS = 10

/**
 * Limits one step of a workflow, in elapsed time; the SDK's types lack the option. Its default of five seconds also ends a
 * step in which the process was paused, and Node.js may then abort the process (sdk-typescript#939).
 */
const STEP_LIMIT = { isolateExecutionTimeout: '1 hour' }

/** After the grace attempts are cancelled, and after this delay the worker ends without them. */
const FORCE_DELAY_MS = 2_000

/** The workers of one process: for workflows and their activities on the main task queue, for attempts on the others. */
export type Workers = {
  /** Runs until `shutdown`. Rejects when one of the workers ends by itself, after the others have ended too. */
  run(): Promise<void>
  shutdown(): void
  /** Releases the connection, instead of `run`. */
  discard(): Promise<void>
  load(): WorkerLoad
}

const KINDS: readonly AttemptQueue[] = ['first', 'retry', 'slow']

export type CreateWorker = (options: WorkerOptions) => Promise<Worker>

/** Creates a worker for each task queue, on the client's connection. */
export async function createWorkers(
  connection: NativeConnection,
  settings: WorkerSettings,
  activities: Activities,
  createWorker: CreateWorker = (options) => Worker.create(options),
): Promise<Workers> {
  const { namespace, taskQueue, shutdownGraceMs, version } = settings
  const common = {
    connection,
    namespace,
    shutdownGraceTime: shutdownGraceMs,
    shutdownForceTime: shutdownGraceMs + FORCE_DELAY_MS,
    ...(version === null ? {} : { workerDeploymentOptions: deploymentOptions(version) }),
  }
  const workflowOptions = {
    ...workflowCode(),
    ...STEP_LIMIT,
    maxConcurrentWorkflowTaskExecutions: WORKFLOW_TASK_SLOTS,
    maxConcurrentWorkflowTaskPolls: POLLERS,
    maxCachedWorkflows: MAX_CACHED_WORKFLOWS,
  }
  const create = (kind: AttemptQueue): Promise<Worker> =>
    createWorker({
      ...common,
      taskQueue: attemptQueue(taskQueue, kind),
      ...(kind === 'first'
        ? { activities, ...workflowOptions }
        : { activities: { makeAttempt: activities.makeAttempt } }),
      maxConcurrentActivityTaskExecutions: ACTIVITY_SLOTS[kind],
      maxConcurrentActivityTaskPolls: POLLERS,
    })
  const workers = new Map<AttemptQueue, Worker>()
  try {
    for (const kind of KINDS) workers.set(kind, await create(kind))
  } catch (error) {
    await Promise.all([...workers.values()].map(discard))
    throw error
  }
  const shutdown = (): void => {
    for (const worker of workers.values()) if (worker.getState() === 'RUNNING') worker.shutdown()
  }
  return {
    async run() {
      const runs = [...workers.values()].map((worker) => worker.run().finally(shutdown))
      const ended = await Promise.allSettled(runs)
      for (const end of ended) if (end.status === 'rejected') throw end.reason
    },
    shutdown,
    async discard() {
      await Promise.all([...workers.values()].map(discard))
    },
    load: () => loadOf(workers),
  }
}

function deploymentOptions(version: WorkerDeploymentVersion): WorkerDeploymentOptions {
  return { version, useWorkerVersioning: true, defaultVersioningBehavior: 'AUTO_UPGRADE' }
}

/** A worker releases its connection only after it has run. */
function discard(worker: Worker): Promise<void> {
  return worker.runUntil(Promise.resolve())
}

/** The load of the workers of a process. `isRunning`: they take tasks. */
export type WorkerLoad = {
  isRunning: boolean
  activities: Readonly<Record<AttemptQueue, number>>
  workflowTasks: number
  cachedWorkflows: number
}

/** The load while the workers are not created yet, or again. */
export const NO_LOAD: WorkerLoad = {
  isRunning: false,
  activities: { first: 0, retry: 0, slow: 0 },
  workflowTasks: 0,
  cachedWorkflows: 0,
}

function loadOf(workers: ReadonlyMap<AttemptQueue, Worker>): WorkerLoad {
  const statuses = new Map([...workers].map(([kind, worker]) => [kind, worker.getStatus()]))
  const activities = (kind: AttemptQueue): number => statuses.get(kind)?.numInFlightActivities ?? 0
  const main = statuses.get('first')
  return {
    isRunning: [...statuses.values()].every(({ runState }) => runState === 'RUNNING'),
    activities: { first: activities('first'), retry: activities('retry'), slow: activities('slow') },
    workflowTasks: main?.numInFlightWorkflowActivations ?? 0,
    cachedWorkflows: main?.numCachedWorkflows ?? 0,
  }
}

/** Returns the bundle of `npm run build` next to the compiled code, or the sources. */
function workflowCode(): { workflowBundle: { codePath: string } } | { workflowsPath: string } {
  const bundle = fileURLToPath(new URL('../../workflow-bundle.js', import.meta.url))
  if (existsSync(bundle)) return { workflowBundle: { codePath: bundle } }
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  return { workflowsPath: fileURLToPath(new URL(`../../workflows/index.${extension}`, import.meta.url)) }
}

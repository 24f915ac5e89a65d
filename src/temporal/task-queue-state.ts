import { attemptQueue } from '../domain/attempt-outcome.ts'
import { withCallTimeout, hasGrpcCode } from './calls.ts'
import type { TemporalConnection } from './namespace.ts'

/** `buildId` is null where the worker names none. */
type Worker = { buildId: string | null }

/**
 * Tasks of one kind on one task queue: the workers that serve it, and how many tasks wait for how long. The workers are
 * those that send heartbeats, or where none does those that polled lately.
 */
export type TaskQueueState = {
  taskQueue: string
  taskType: 'workflow' | 'activity'
  workers: Worker[]
  hasHeartbeats: boolean
  backlog: number
  backlogAgeMs: number
}

/**
 * TASK_QUEUE_TYPE_WORKFLOW and TASK_QUEUE_TYPE_ACTIVITY of temporal.api.enums.v1.TaskQueueType, as fields of a request:
 * the client does not export the type.
 */
const TASK_TYPES = {
  workflow: Object.fromEntries([['taskQueueType', 1]]),
  activity: Object.fromEntries([['taskQueueType', 2]]),
}

/** Temporal lists pollers for five minutes after their last poll; one poll lasts a minute at most. */
const POLL_TTL_MS = 120_000

/** Reads the state of all task queues of Posthorn. Throws while Temporal is unavailable. */
export function readTaskQueues(
  connection: TemporalConnection,
  { namespace, taskQueue }: { namespace: string; taskQueue: string },
): Promise<TaskQueueState[]> {
  const queues = [
    { name: taskQueue, taskType: 'workflow' },
    { name: taskQueue, taskType: 'activity' },
    { name: attemptQueue(taskQueue, 'retry'), taskType: 'activity' },
    { name: attemptQueue(taskQueue, 'slow'), taskType: 'activity' },
  ] as const
  return withCallTimeout(connection, () =>
    Promise.all(queues.map(({ name, taskType }) => readTaskQueue(connection, namespace, name, taskType))),
  )
}

async function readTaskQueue(
  { workflowService }: TemporalConnection,
  namespace: string,
  taskQueue: string,
  taskType: TaskQueueState['taskType'],
): Promise<TaskQueueState> {
  const reported = await listReportedWorkers({ workflowService }, namespace, taskQueue)
  const { pollers, stats } = await workflowService.describeTaskQueue({
    namespace,
    taskQueue: { name: taskQueue },
    ...TASK_TYPES[taskType],
    reportStats: true,
  })
  const isPolling = ({ lastAccessTime }: (typeof pollers)[number]): boolean =>
    Date.now() - Number(lastAccessTime?.seconds ?? 0) * 1_000 < POLL_TTL_MS
  const polling = pollers.filter(isPolling).map(({ deploymentOptions, workerVersionCapabilities }) => ({
    buildId: (deploymentOptions?.buildId ?? workerVersionCapabilities?.buildId) || null,
  }))
  return {
    taskQueue,
    taskType,
    workers: reported.length > 0 ? reported : polling,
    hasHeartbeats: reported.length > 0,
    backlog: Number(stats?.approximateBacklogCount ?? 0),
    backlogAgeMs: Number(stats?.approximateBacklogAge?.seconds ?? 0) * 1_000,
  }
}

/** WORKER_STATUS_RUNNING of temporal.api.enums.v1.WorkerStatus. */
const RUNNING: unknown = 1

/** Workers report once a minute, and Temporal lists them for five minutes after their last report. */
const HEARTBEAT_TTL_MS = 120_000

const PAGE_SIZE = 1_000

type Listed = Awaited<ReturnType<TemporalConnection['workflowService']['listWorkers']>>['workersInfo'][number]

/**
 * Returns the running workers of a task queue that send heartbeats; none where the server or the namespace has no
 * heartbeats. Throws while Temporal is unavailable.
 */
export async function listReportedWorkers(
  { workflowService }: Pick<TemporalConnection, 'workflowService'>,
  namespace: string,
  taskQueue: string,
): Promise<Worker[]> {
  try {
    const query = `TaskQueue = '${taskQueue.replaceAll("'", "''")}'`
    const { workersInfo } = await workflowService.listWorkers({ namespace, query, pageSize: PAGE_SIZE })
    return workersInfo.filter(isRunning).map(({ workerHeartbeat }) => ({
      buildId: workerHeartbeat?.deploymentVersion?.buildId || null,
    }))
  } catch (error) {
    if (hasGrpcCode(error, 'UNIMPLEMENTED')) return []
    throw error
  }
}

function isRunning({ workerHeartbeat }: Listed): boolean {
  const heartbeatMs = Number(workerHeartbeat?.heartbeatTime?.seconds ?? 0) * 1_000
  return workerHeartbeat?.status === RUNNING && Date.now() - heartbeatMs < HEARTBEAT_TTL_MS
}

import { hasGrpcCode } from './grpc-errors.ts'
import type { TemporalConnection } from './namespace.ts'

/** A worker that reports to Temporal that it runs. `buildId` is null where it names none. */
export type ReportedWorker = { taskQueue: string; identity: string; buildId: string | null }

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
): Promise<ReportedWorker[]> {
  try {
    const query = `TaskQueue = '${taskQueue.replaceAll("'", "''")}'`
    const { workersInfo } = await workflowService.listWorkers({ namespace, query, pageSize: PAGE_SIZE })
    return workersInfo.filter(isRunning).map((listed) => presentWorker(listed, taskQueue))
  } catch (error) {
    if (hasGrpcCode(error, 'UNIMPLEMENTED')) return []
    throw error
  }
}

function isRunning({ workerHeartbeat }: Listed): boolean {
  const heartbeatMs = Number(workerHeartbeat?.heartbeatTime?.seconds ?? 0) * 1_000
  return workerHeartbeat?.status === RUNNING && Date.now() - heartbeatMs < HEARTBEAT_TTL_MS
}

function presentWorker({ workerHeartbeat }: Listed, taskQueue: string): ReportedWorker {
  return {
    taskQueue,
    identity: workerHeartbeat?.workerIdentity ?? '',
    buildId: workerHeartbeat?.deploymentVersion?.buildId || null,
  }
}

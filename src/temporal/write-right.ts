import { randomUUID } from 'node:crypto'
import { isGrpcServiceError } from '@temporalio/client'
import { isAccessRefused, type TemporalConnection } from './namespace.ts'

const CALL_TIMEOUT_MS = 4_000

/** NOT_FOUND of gRPC. */
const NOT_FOUND: unknown = 5

/**
 * Returns whether this process may write in the namespace. Signals a workflow that does not exist, which changes nothing:
 * Temporal checks the permission first. Throws while Temporal is unavailable.
 */
export async function mayWrite(connection: TemporalConnection, namespace: string): Promise<boolean> {
  try {
    await connection.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
      connection.workflowService.signalWorkflowExecution({
        namespace,
        workflowExecution: { workflowId: `doctor/${randomUUID()}` },
        signalName: 'stop',
      }),
    )
    return true
  } catch (error) {
    if (isGrpcServiceError(error) && error.code === NOT_FOUND) return true
    if (isAccessRefused(error)) return false
    throw error
  }
}

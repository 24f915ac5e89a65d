import { randomUUID } from 'node:crypto'
import { withCallTimeout } from './calls.ts'
import { hasGrpcCode, isAccessRefused } from './grpc-errors.ts'
import type { TemporalConnection } from './namespace.ts'

/**
 * Returns whether this process may write in the namespace. Signals a workflow that does not exist, which changes nothing:
 * Temporal checks the permission first. Throws while Temporal is unavailable.
 */
export async function mayWrite(connection: TemporalConnection, namespace: string): Promise<boolean> {
  try {
    await withCallTimeout(connection, () =>
      connection.workflowService.signalWorkflowExecution({
        namespace,
        workflowExecution: { workflowId: `doctor/${randomUUID()}` },
        signalName: 'stop',
      }),
    )
    return true
  } catch (error) {
    if (hasGrpcCode(error, 'NOT_FOUND')) return true
    if (isAccessRefused(error)) return false
    throw error
  }
}

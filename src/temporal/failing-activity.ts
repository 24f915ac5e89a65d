import { WorkflowNotFoundError, type Client } from '@temporalio/client'
import { withCallTimeout } from './calls.ts'

/** Failures in a row: one or two may be a worker that was lost. */
const MIN_FAILURES = 3

/**
 * Returns how often the activity in progress of a workflow has failed in a row; 0 below MIN_FAILURES, and where there is
 * none. Activities fail by faults of ours only. Throws while Temporal is unavailable.
 */
export async function countActivityFailures(client: Client, workflowId: string): Promise<number> {
  try {
    const { raw } = await withCallTimeout(client, () => client.workflow.getHandle(workflowId).describe())
    const failures = (raw.pendingActivities ?? []).map(({ attempt, lastFailure }) =>
      lastFailure ? (attempt ?? 1) - 1 : 0,
    )
    const most = Math.max(0, ...failures)
    return most < MIN_FAILURES ? 0 : most
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return 0
    throw error
  }
}

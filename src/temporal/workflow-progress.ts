import { WorkflowNotFoundError, type Client } from '@temporalio/client'
import { inTime } from './calls.ts'

/**
 * How a workflow that ought to have acted stands. `alive`: it waits, is queued, or has an activity under way. `stuck`:
 * its workflow task fails again and again, such as after a change of its code that its history does not fit.
 */
type WorkflowProgress =
  | { state: 'gone' }
  | { state: 'alive' }
  | { state: 'stuck'; runId: string; taskAttempts: number; cause: string }

/** A workflow task that has been tried so often, and of which Temporal recorded that it failed, does not succeed. */
const STUCK_AFTER_TASKS = 3

/** The same where no failure is recorded: each of them ran into its time limit of ten seconds. */
const STUCK_AFTER_TIMEOUTS = 10

/** Events from the end of a history: the task that failed, and what is recorded after it. */
const LAST_EVENTS = 5

/**
 * Asks how a workflow stands that should have acted by now, and terminates it where it is stuck, so that another run can
 * be started. Throws while Temporal is away.
 */
export type TerminateIfStuck = (workflowId: string) => Promise<WorkflowProgress>

export function createTerminateIfStuck(client: () => Client): TerminateIfStuck {
  return async (workflowId) => {
    const progress = await readProgress(client(), workflowId)
    if (progress.state === 'stuck') await terminate(client(), workflowId, progress.runId)
    return progress
  }
}

async function readProgress(client: Client, workflowId: string): Promise<WorkflowProgress> {
  try {
    const { raw, runId, status } = await inTime(client, () =>
      client.workflow.getHandle(workflowId).describe(),
    )
    if (status.name !== 'RUNNING') return { state: 'gone' }
    const taskAttempts = raw.pendingWorkflowTask?.attempt ?? 0
    const isAtWork = (raw.pendingActivities?.length ?? 0) > 0
    if (taskAttempts < STUCK_AFTER_TASKS || isAtWork) return { state: 'alive' }
    const cause = await readTaskFailure(client, workflowId, runId)
    if (cause === null && taskAttempts < STUCK_AFTER_TIMEOUTS) return { state: 'alive' }
    return { state: 'stuck', runId, taskAttempts, cause: cause ?? 'task_timeout' }
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return { state: 'gone' }
    throw error
  }
}

/** Of temporal.api.enums.v1.WorkflowTaskFailedCause: what a next try may well mend, and the faults that have a name here. */
const TRANSIENT_CAUSES: readonly unknown[] = [1, 13]
const CAUSES: Record<number, string> = {
  14: 'workflow_error',
  23: 'bad_search_attributes',
  24: 'non_determinism',
}

/** Why the latest workflow task failed; null where it did not, or might succeed. */
async function readTaskFailure(client: Client, workflowId: string, runId: string): Promise<string | null> {
  const { history } = await inTime(client, () =>
    client.workflowService.getWorkflowExecutionHistoryReverse({
      namespace: client.options.namespace,
      execution: { workflowId, runId },
      maximumPageSize: LAST_EVENTS,
    }),
  )
  for (const event of history?.events ?? []) {
    if (event.workflowTaskCompletedEventAttributes) return null
    const cause = event.workflowTaskFailedEventAttributes?.cause
    if (cause === undefined || cause === null) continue
    return TRANSIENT_CAUSES.includes(cause) ? null : (CAUSES[cause] ?? `cause_${cause}`)
  }
  return null
}

/** Terminates a run; one that has ended meanwhile is left as it is. */
async function terminate(client: Client, workflowId: string, runId: string): Promise<void> {
  try {
    const handle = client.workflow.getHandle(workflowId, runId)
    await inTime(client, () => handle.terminate('posthorn: it made no progress and is replaced'))
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error
  }
}

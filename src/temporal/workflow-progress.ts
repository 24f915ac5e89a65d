import type { Client, WorkflowExecutionDescription } from '@temporalio/client'
import { orIfGone, withCallTimeout } from './calls.ts'
import { deliveryWorkflowId, incidentWorkflowId } from './workflows.ts'

/**
 * The progress of a workflow that is late. `alive`: it waits, is queued, or has an activity in flight. `paused`: an
 * operator paused it in Temporal, where it goes on once it is unpaused. `stuck`: its workflow task fails repeatedly, for
 * example because its history does not fit changed code.
 */
export type WorkflowProgress =
  | { state: 'gone' }
  | { state: 'alive' }
  | { state: 'paused'; since: Date }
  | { state: 'stuck'; runId: string; taskAttempts: number; cause: string }

/** Attempts of a workflow task, with a recorded failure, after which it is stuck. */
const MIN_FAILED_TASKS = 3

/** The same without a recorded failure: each attempt ran into its time limit of ten seconds. */
const MIN_TIMED_OUT_TASKS = 10

/** Events from the end of a history: the failed task, and what is recorded after it. */
const MAX_EVENTS = 5

/**
 * Reads the progress of a late workflow, and terminates it if it is stuck, so that a new run can be started. Throws while
 * Temporal is unavailable.
 */
export type TerminateIfStuck = (workflowId: string) => Promise<WorkflowProgress>

export function createTerminateIfStuck(client: () => Client): TerminateIfStuck {
  return async (workflowId) => {
    const progress = await readWorkflowProgress(client(), workflowId)
    if (progress.state === 'stuck')
      await terminate(client(), workflowId, 'it made no progress and is replaced', progress.runId)
    return progress
  }
}

/** Reads the progress of a workflow and changes nothing. Throws while Temporal is unavailable. */
export async function readWorkflowProgress(client: Client, workflowId: string): Promise<WorkflowProgress> {
  const described = await describe(client, workflowId)
  if (described === null) return { state: 'gone' }
  const { raw, runId, status } = described
  const since = pausedSince(described)
  if (since !== null) return { state: 'paused', since }
  if (status.name !== 'RUNNING') return { state: 'gone' }
  const taskAttempts = raw.pendingWorkflowTask?.attempt ?? 0
  const isActive = (raw.pendingActivities?.length ?? 0) > 0
  if (taskAttempts < MIN_FAILED_TASKS || isActive) return { state: 'alive' }
  const cause = await readTaskFailure(client, workflowId, runId)
  if (cause === null && taskAttempts < MIN_TIMED_OUT_TASKS) return { state: 'alive' }
  return { state: 'stuck', runId, taskAttempts, cause: cause ?? 'task_timeout' }
}

/** Null when there is no such workflow. */
function describe(client: Client, workflowId: string): Promise<WorkflowExecutionDescription | null> {
  return orIfGone(null, client, () => client.workflow.getHandle(workflowId).describe())
}

/** Returns since when a workflow is paused, by Temporal's clock; null when it is not. */
export function pausedSince({
  status,
  raw,
}: Pick<WorkflowExecutionDescription, 'status' | 'raw'>): Date | null {
  if (status.name !== 'PAUSED') return null
  const pausedTime = raw.workflowExtendedInfo?.pauseInfo?.pausedTime
  if (!pausedTime) return new Date()
  return new Date(Number(pausedTime.seconds ?? 0) * 1_000 + (pausedTime.nanos ?? 0) / 1e6)
}

/** Causes of temporal.api.enums.v1.WorkflowTaskFailedCause: those that pass by themselves, and those with a name here. */
const TRANSIENT_CAUSES: readonly unknown[] = [1, 13]
const CAUSES: Record<number, string> = {
  14: 'workflow_error',
  23: 'bad_search_attributes',
  24: 'non_determinism',
}

/** Returns why the latest workflow task failed; null when it did not, or may succeed when repeated. */
async function readTaskFailure(client: Client, workflowId: string, runId: string): Promise<string | null> {
  const { history } = await withCallTimeout(client, () =>
    client.workflowService.getWorkflowExecutionHistoryReverse({
      namespace: client.options.namespace,
      execution: { workflowId, runId },
      maximumPageSize: MAX_EVENTS,
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

/** Terminates a workflow, or this run of it, unless it has ended meanwhile. */
function terminate(client: Client, workflowId: string, reason: string, runId?: string): Promise<unknown> {
  const handle = client.workflow.getHandle(workflowId, runId)
  return orIfGone<unknown>(null, client, () => handle.terminate(`posthorn: ${reason}`))
}

/** Failures in a row: one or two may be a worker that was lost. */
const MIN_FAILURES = 3

/**
 * Returns how often the activity in progress of a workflow has failed in a row; 0 below MIN_FAILURES, and where there is
 * none. Activities fail by faults of ours only. Throws while Temporal is unavailable.
 */
export async function countActivityFailures(client: Client, workflowId: string): Promise<number> {
  const described = await describe(client, workflowId)
  const failures = (described?.raw.pendingActivities ?? []).map(({ attempt, lastFailure }) =>
    lastFailure ? (attempt ?? 1) - 1 : 0,
  )
  const most = Math.max(0, ...failures)
  return most < MIN_FAILURES ? 0 : most
}

/** Ends workflows of what is erased; one that has ended, or never was, is fine. Throws while Temporal is unavailable. */
export type WorkflowTermination = {
  ofDelivery(deliveryId: string): Promise<void>
  ofIncident(webhookId: string, incidentId: string): Promise<void>
}

export function createWorkflowTermination(client: () => Client): WorkflowTermination {
  const end = async (workflowId: string): Promise<void> => {
    await terminate(client(), workflowId, 'its organisation is erased')
  }
  return {
    ofDelivery: (deliveryId) => end(deliveryWorkflowId(deliveryId)),
    ofIncident: (webhookId, incidentId) => end(incidentWorkflowId(webhookId, incidentId)),
  }
}

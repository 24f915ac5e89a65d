import {
  ScheduleAlreadyRunning,
  ScheduleNotFoundError,
  ScheduleOverlapPolicy,
  type Client,
} from '@temporalio/client'
import type { PurgeInput } from '../domain/workflow-inputs.ts'
import { withCallTimeout } from './calls.ts'

export const RETENTION_SCHEDULE_ID = 'posthorn-retention'

type RetentionOptions = { taskQueue: string; limits: PurgeInput }

/**
 * Creates the schedule that starts `purge` every hour, with these limits on this task queue; with `isNew` it also updates
 * one that exists. Idempotent, also for concurrent processes. A schedule that an operator paused stays paused.
 * Throws while Temporal is unavailable.
 */
export async function ensureRetentionSchedule(
  client: Client,
  options: RetentionOptions & { isNew: boolean },
): Promise<void> {
  const isMissing = options.isNew || (await withCallTimeout(client, () => isScheduleMissing(client)))
  if (isMissing) await withCallTimeout(client, () => createOrUpdate(client, options))
}

async function createOrUpdate(client: Client, { taskQueue, limits }: RetentionOptions): Promise<void> {
  const schedule = scheduleOf(taskQueue, limits)
  try {
    await client.schedule.create({ ...schedule, scheduleId: RETENTION_SCHEDULE_ID })
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error
    const handle = client.schedule.getHandle(RETENTION_SCHEDULE_ID)
    await handle.update(({ state }) => ({ ...schedule, state }))
  }
}

async function isScheduleMissing(client: Client): Promise<boolean> {
  try {
    await client.schedule.getHandle(RETENTION_SCHEDULE_ID).describe()
    return false
  } catch (error) {
    if (error instanceof ScheduleNotFoundError) return true
    throw error
  }
}

function scheduleOf(taskQueue: string, limits: PurgeInput) {
  return {
    spec: { intervals: [{ every: '1 hour' as const }] },
    policies: {
      overlap: ScheduleOverlapPolicy.SKIP,
      // Later, the next run of the schedule is near enough.
      catchupWindow: '10 minutes' as const,
    },
    action: {
      type: 'startWorkflow' as const,
      workflowType: 'purge',
      // Temporal appends the time of the run.
      workflowId: 'purge/hourly',
      taskQueue,
      args: [limits] as [PurgeInput],
      staticSummary: 'retention',
      // Within the hour: a run without a worker would otherwise block the next ones.
      workflowRunTimeout: '55 minutes' as const,
    },
  }
}

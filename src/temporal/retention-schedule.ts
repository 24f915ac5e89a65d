import {
  ScheduleAlreadyRunning,
  ScheduleNotFoundError,
  ScheduleOverlapPolicy,
  type Client,
} from '@temporalio/client'
import type { PurgeInput } from '../../workflows/messages.ts'
import { inTime } from './calls.ts'

export const RETENTION_SCHEDULE_ID = 'posthorn-retention'

type RetentionOptions = { taskQueue: string; limits: PurgeInput }

/**
 * Makes sure that one schedule starts `purge` every hour, with these limits on this task queue. `isNew`: also where
 * there is one, which may have other limits; otherwise only where there is none any more.
 * Harmless to repeat, and for several processes at once. A schedule that an operator paused stays so.
 * Throws while the engine is away.
 */
export async function ensureRetentionSchedule(
  client: Client,
  options: RetentionOptions & { isNew: boolean },
): Promise<void> {
  const isMissing = options.isNew || (await inTime(client, () => isScheduleMissing(client)))
  if (isMissing) await inTime(client, () => createOrUpdate(client, options))
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
      // A turn that fell into an outage of the engine is made up for only if the next one is not near anyway.
      catchupWindow: '10 minutes' as const,
    },
    action: {
      type: 'startWorkflow' as const,
      workflowType: 'purge',
      // The engine appends the time of the turn.
      workflowId: 'purge/hourly',
      taskQueue,
      args: [limits] as [PurgeInput],
      staticSummary: 'retention',
      // Within the hour: a turn that no worker carries out must not hold up those after it for ever.
      workflowRunTimeout: '55 minutes' as const,
    },
  }
}

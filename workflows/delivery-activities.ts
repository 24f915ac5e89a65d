import { proxyActivities, workflowInfo } from '@temporalio/workflow'
import type { Activities } from '../activities/index.ts'
import type { AttemptOutcome } from '../src/domain/attempt-outcome.ts'
import { attemptName } from '../src/domain/retry-schedule.ts'
import { attemptQueue, type AttemptKind } from '../src/domain/task-queues.ts'
import { ACTIVITY_OPTIONS } from './activity-options.ts'
import type { DeliverEventInput } from './interface.ts'

const activities = proxyActivities<Activities>(ACTIVITY_OPTIONS)

/**
 * Runs attempt `number`: not before `dueAtMs` of the database's clock, unless that is null, and with `onlyIfDue` only if
 * the row is due.
 */
export function makeAttempt(
  input: DeliverEventInput,
  number: number,
  options: { dueAtMs: number | null; onlyIfDue: boolean; kind: AttemptKind },
): Promise<AttemptOutcome> {
  const { organisationId, webhookId, deliveryId, leadMs } = input
  const { dueAtMs, onlyIfDue, kind } = options
  const waitUntil = dueAtMs === null || leadMs === 0 ? null : { dueAtMs, maxWaitMs: leadMs }
  const { taskQueue } = workflowInfo()
  const activityOptions = {
    ...ACTIVITY_OPTIONS,
    summary: attemptName(number),
    taskQueue: attemptQueue(taskQueue, kind),
  }
  return activities.makeAttempt.executeWithOptions(activityOptions, [
    { organisationId, webhookId, deliveryId, number, waitUntil, onlyIfDue, kind },
  ])
}

/** Records on the row that a retry is requested. */
export async function requestRetry({
  organisationId,
  webhookId,
  deliveryId,
}: DeliverEventInput): Promise<void> {
  await activities.requestRetry.executeWithOptions(
    { ...ACTIVITY_OPTIONS, summary: 'record a retry requested by signal' },
    [{ organisationId, webhookId, deliveryId }],
  )
}

import { proxyActivities, workflowInfo } from '@temporalio/workflow'
import type { Activities } from '../activities/index.ts'
import type { AttemptOutcome } from '../src/domain/attempt-outcome.ts'
import type { DeliverEventInput } from '../src/domain/workflow-inputs.ts'
import { type AttemptRequest, attemptQueue } from '../src/domain/attempt-outcome.ts'
import { attemptName } from '../src/domain/retry-schedule.ts'
import { ACTIVITY_OPTIONS } from './run-to-end.ts'

const activities = proxyActivities<Activities>(ACTIVITY_OPTIONS)

/** Requests an attempt. It is not made before the row is due. */
export function makeAttempt(
  { organisationId, webhookId, deliveryId, leadMs }: DeliverEventInput,
  { number, dueAtMs, queue }: Pick<AttemptRequest, 'number' | 'dueAtMs' | 'queue'>,
): Promise<AttemptOutcome> {
  const { taskQueue } = workflowInfo()
  const options = {
    ...ACTIVITY_OPTIONS,
    summary: attemptName(number),
    taskQueue: attemptQueue(taskQueue, queue),
  }
  return activities.makeAttempt.executeWithOptions(options, [
    { organisationId, webhookId, deliveryId, number, dueAtMs, maxWaitMs: leadMs, queue },
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

import { proxyActivities, workflowInfo } from '@temporalio/workflow'
import type { Activities } from '../activities/index.ts'
import type { AttemptOutcome } from '../src/domain/attempt-outcome.ts'
import { attemptName } from '../src/domain/retry-schedule.ts'
import { attemptQueue, type AttemptKind } from '../src/domain/task-queues.ts'
import type { DeliverEventInput } from './messages.ts'

/**
 * Only for faults of ours, and without an end: a receiver's failure is an outcome, not an error.
 * The heartbeat tells a lost worker within ten seconds; the long deadline covers an attempt that waits for the database.
 */
const OWN_FAULTS = {
  startToCloseTimeout: '1 hour',
  heartbeatTimeout: '10 seconds',
  retry: { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '1 minute' },
} as const

const activities = proxyActivities<Activities>(OWN_FAULTS)

/**
 * Has a worker make attempt `number`: not before `dueAtMs` on the database's clock when that is given, and with
 * `onlyIfDue` only if the row says that its time has come.
 */
export function makeAttempt(
  input: DeliverEventInput,
  number: number,
  how: { dueAtMs: number | null; onlyIfDue: boolean; kind: AttemptKind },
): Promise<AttemptOutcome> {
  const { organisationId, webhookId, deliveryId, leadMs } = input
  const { dueAtMs, onlyIfDue, kind } = how
  const hold = dueAtMs === null || leadMs === 0 ? null : { untilMs: dueAtMs, atMostMs: leadMs }
  const { taskQueue } = workflowInfo()
  const options = {
    ...OWN_FAULTS,
    summary: attemptName(number),
    taskQueue: attemptQueue(taskQueue, kind),
  }
  return activities.makeAttempt.executeWithOptions(options, [
    { organisationId, webhookId, deliveryId, number, hold, onlyIfDue, kind },
  ])
}

/** Notes on the row that a person wants the next attempt at once. */
export async function askForRetry({
  organisationId,
  webhookId,
  deliveryId,
}: DeliverEventInput): Promise<void> {
  await activities.askForRetry.executeWithOptions(
    { ...OWN_FAULTS, summary: 'note a retry asked for by hand' },
    [{ organisationId, webhookId, deliveryId }],
  )
}

import { proxyActivities } from '@temporalio/workflow'
import type { Activities } from '../activities/index.ts'
import type { AttemptOutcome } from '../src/domain/attempt-outcome.ts'
import { MAX_ATTEMPTS } from '../src/domain/retry-schedule.ts'
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

/** Has a worker make attempt `number`, not before `dueAtMs` on the worker's clock when that is given. */
export function makeAttempt(
  input: DeliverEventInput,
  number: number,
  dueAtMs: number | null,
): Promise<AttemptOutcome> {
  const { organisationId, deliveryId, leadMs } = input
  const hold = dueAtMs === null || leadMs === 0 ? null : { untilMs: dueAtMs, atMostMs: leadMs }
  return activities.makeAttempt.executeWithOptions(
    { ...OWN_FAULTS, summary: `attempt ${number} of ${MAX_ATTEMPTS}` },
    [{ organisationId, deliveryId, number, trigger: 'schedule', hold }],
  )
}

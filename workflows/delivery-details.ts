import { setCurrentDetails, upsertSearchAttributes, workflowInfo } from '@temporalio/workflow'
import { describeOutcome } from '../src/domain/attempt-outcome.ts'
import type { DeliveryState } from '../src/domain/delivery-state.ts'
import { attemptName } from '../src/domain/retry-schedule.ts'
import type { DeliverySnapshot, RecordedAttempt } from '../src/domain/workflow-inputs.ts'

/**
 * Sets the current details in the Temporal UI: the last outcome and the next attempt, and a first attempt that was
 * `recorded` before the workflow began. Adds no event to the history.
 */
export function showDelivery(snapshot: DeliverySnapshot, recorded?: RecordedAttempt): void {
  const next = snapshot.nextAttemptAtMs === null ? 'none' : new Date(snapshot.nextAttemptAtMs).toISOString()
  const lines = [
    '| | |',
    '|---|---|',
    `| Now | ${describeState(snapshot)} |`,
    `| Attempts made | ${snapshot.attempts} |`,
    `| Last outcome | ${snapshot.lastOutcome ?? 'none yet'} |`,
    `| Next attempt | ${next} |`,
    ...(recorded === undefined ? [] : [`| First attempt | ${describeFirstAttempt(recorded)} |`]),
  ]
  setCurrentDetails(lines.join('\n'))
}

/**
 * Sets the search attribute `DeliveryState`. Called at the first wait, and at the end of a delivery that has waited, so
 * that a delivery that succeeds at once costs no event more.
 */
export function indexState(state: DeliveryState): void {
  upsertSearchAttributes({ DeliveryState: [state] })
}

/** True when `DeliveryState` is `waiting` already. */
export function isIndexedAsWaiting(): boolean {
  const attributes = workflowInfo().typedSearchAttributes.getAll()
  return attributes.some(({ key, value }) => key.name === 'DeliveryState' && value === 'waiting')
}

/** Returns who made the first attempt, when, and with which answer. */
function describeFirstAttempt({
  state,
  atMs,
  failureCode = null,
  statusCode = null,
}: RecordedAttempt): string {
  const at = atMs === undefined ? '' : ` at ${new Date(atMs).toISOString()}`
  const answer = describeOutcome({ state, failureCode, statusCode })
  return `made inline by a Posthorn process${at}, before this workflow began: ${answer}`
}

function describeState(snapshot: DeliverySnapshot): string {
  switch (snapshot.state) {
    case 'pending':
      return 'about to make the first attempt'
    case 'in_progress':
      return `making ${attemptName(snapshot.attempts + 1)}`
    case 'waiting':
      return `waiting for ${attemptName(snapshot.attempts + 1)}`
    case 'completed':
      return 'completed: the endpoint confirmed'
    case 'failed':
      return 'permanently failed: no attempt is left on the schedule'
    case 'stopped':
      return 'stopped: its webhook was disabled, deleted or unsubscribed, a user discarded it, or it was a test event that failed'
  }
}

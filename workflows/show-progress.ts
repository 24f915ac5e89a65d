import { setCurrentDetails, upsertSearchAttributes, workflowInfo } from '@temporalio/workflow'
import type { DeliveryState } from '../src/domain/delivery-state.ts'
import { attemptName } from '../src/domain/retry-schedule.ts'
import type { DeliverySnapshot } from './messages.ts'

/** Writes the details panel of the Temporal UI: what happened last and what is waited for. Costs no history. */
export function showProgress(snapshot: DeliverySnapshot): void {
  const next = snapshot.nextAttemptAtMs === null ? 'none' : new Date(snapshot.nextAttemptAtMs).toISOString()
  const lines = [
    '| | |',
    '|---|---|',
    `| Now | ${inWords(snapshot)} |`,
    `| Attempts made | ${snapshot.attempts} |`,
    `| Last outcome | ${snapshot.lastOutcome ?? 'none yet'} |`,
    `| Next attempt | ${next} |`,
  ]
  setCurrentDetails(lines.join('\n'))
}

/**
 * Makes the state searchable as `DeliveryState`. Called at the first wait, and at the end of a delivery that ever waited,
 * so that a delivery that succeeds at once costs nothing more.
 */
export function showState(state: DeliveryState): void {
  upsertSearchAttributes({ DeliveryState: [state] })
}

/** Whether `DeliveryState` is `waiting` already. Runs that earlier releases began at a retry have it from their start. */
export function isShownAsWaiting(): boolean {
  const attributes = workflowInfo().typedSearchAttributes.getAll()
  return attributes.some(({ key, value }) => key.name === 'DeliveryState' && value === 'waiting')
}

function inWords(snapshot: DeliverySnapshot): string {
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

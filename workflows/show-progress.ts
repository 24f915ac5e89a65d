import { setCurrentDetails, upsertSearchAttributes } from '@temporalio/workflow'
import type { DeliveryState } from '../src/domain/delivery-state.ts'
import { MAX_ATTEMPTS } from '../src/domain/retry-schedule.ts'
import type { DeliverySnapshot } from './messages.ts'

/** Writes the details panel of the Temporal UI: what happened last and what is waited for. Costs no history. */
export function showProgress(snapshot: DeliverySnapshot): void {
  const next = snapshot.nextAttemptAtMs === null ? 'none' : new Date(snapshot.nextAttemptAtMs).toISOString()
  const lines = [
    '| | |',
    '|---|---|',
    `| Now | ${inWords(snapshot)} |`,
    `| Attempts made | ${snapshot.attempts} of ${MAX_ATTEMPTS} |`,
    `| Last outcome | ${snapshot.lastOutcome ?? 'none yet'} |`,
    `| Next attempt | ${next} |`,
  ]
  setCurrentDetails(lines.join('\n'))
}

/** Makes the state searchable as `DeliveryState`; called only for deliveries that had to wait. */
export function showState(state: DeliveryState): void {
  upsertSearchAttributes({ DeliveryState: [state] })
}

function inWords(snapshot: DeliverySnapshot): string {
  switch (snapshot.state) {
    case 'pending':
      return 'about to make the first attempt'
    case 'in_progress':
      return `making attempt ${snapshot.attempts + 1} of ${MAX_ATTEMPTS}`
    case 'waiting':
      return `waiting for attempt ${snapshot.attempts + 1} of ${MAX_ATTEMPTS}`
    case 'completed':
      return 'completed: the endpoint confirmed'
    case 'failed':
      return 'permanently failed: every attempt was made'
    case 'stopped':
      return 'stopped: the webhook was disabled or deleted'
  }
}

import { setHandler, sleep } from '@temporalio/workflow'
import { describeOutcome } from '../src/domain/attempt-outcome.ts'
import { MAX_ATTEMPTS, waitAfterAttempt } from '../src/domain/retry-schedule.ts'
import { makeAttempt } from './make-attempt.ts'
import {
  deliveryStateQuery,
  type DeliverEventInput,
  type DeliverEventResult,
  type DeliverySnapshot,
} from './messages.ts'
import { showProgress, showState } from './show-progress.ts'

/** An outcome that took longer than this to record (the database was away) has eaten into the next wait. */
const ORDINARY_RECORDING_MS = 1_000

/**
 * One delivery from its next attempt to its end (spec 3.1 and 8.1): attempt → outcome → wait → attempt …
 * The rows in PostgreSQL are the truth; this workflow keeps time and never loses its place.
 * An exhausted delivery completes with `failed`: a failed workflow would mean a fault of ours.
 */
export async function deliverEvent(input: DeliverEventInput): Promise<DeliverEventResult> {
  const snapshot: DeliverySnapshot = {
    state: input.next.number === 1 ? 'pending' : 'waiting',
    attempts: input.next.number - 1,
    lastOutcome: null,
    nextAttemptAtMs: input.next.dueAtMs,
  }
  setHandler(deliveryStateQuery, () => snapshot)

  let { number, dueAtMs } = input.next
  let everWaited = false
  if (dueAtMs !== null) {
    await waitForAttempt(number, dueAtMs - Date.now(), input.leadMs, snapshot)
    everWaited = true
  }
  for (;;) {
    snapshot.state = 'in_progress'
    const outcome = await makeAttempt(input, number, dueAtMs)
    snapshot.state = outcome.state
    snapshot.attempts = outcome.attempts
    snapshot.lastOutcome = describeOutcome(outcome)
    snapshot.nextAttemptAtMs = null
    if (outcome.state !== 'waiting') {
      showProgress(snapshot)
      if (everWaited) showState(outcome.state)
      return { state: outcome.state, attempts: outcome.attempts }
    }
    if (!everWaited) showState('waiting')
    everWaited = true
    number = outcome.attempts + 1
    const waitMs = waitAfterAttempt(outcome.attempts) ?? 0
    dueAtMs = outcome.endedAtMs + waitMs
    const lateMs = Math.max(0, outcome.recordingMs - ORDINARY_RECORDING_MS)
    await waitForAttempt(number, waitMs - lateMs, input.leadMs, snapshot)
  }
}

/**
 * Sleeps on the engine's clock until `leadMs` before attempt `number` is due; the attempt itself holds the rest.
 * `waitMs` counts from now, an instant after the end of the attempt before.
 */
async function waitForAttempt(
  number: number,
  waitMs: number,
  leadMs: number,
  snapshot: DeliverySnapshot,
): Promise<void> {
  snapshot.nextAttemptAtMs = Date.now() + Math.max(0, waitMs)
  showProgress(snapshot)
  const last = snapshot.lastOutcome === null ? '' : ` · ${snapshot.lastOutcome}`
  await sleep(Math.max(0, waitMs - leadMs), { summary: `attempt ${number} of ${MAX_ATTEMPTS}${last}` })
}

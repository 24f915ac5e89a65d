import {
  condition,
  continueAsNew,
  defineQuery,
  defineSignal,
  patched,
  proxyActivities,
  setHandler,
  workflowInfo,
  setCurrentDetails,
  upsertSearchAttributes,
} from '@temporalio/workflow'
import type { Activities } from '../activities/index.ts'
import { firstSnapshot, runDelivery } from './delivery-loop.ts'
import type {
  DeliverEventInput,
  DeliverEventResult,
  DeliverySnapshot,
  RecordedAttempt,
} from '../src/domain/workflow-inputs.ts'
import {
  attemptQueue,
  type AttemptOutcome,
  type AttemptRequest,
  describeOutcome,
} from '../src/domain/attempt-outcome.ts'
import { attemptName } from '../src/domain/retry-schedule.ts'
import { ACTIVITY_OPTIONS, ignoreCancellation } from './run-to-end.ts'
import type { DeliveryState } from '../src/domain/delivery-state.ts'

const activities = proxyActivities<Activities>(ACTIVITY_OPTIONS)

/**
 * Requests the next attempt at once. `isRecorded`: the row has the request; without it (a signal sent by an operator) the
 * workflow records it first. The row decides what happens.
 */
const retrySignal = defineSignal<[{ isRecorded: boolean }?]>('retry')

/** Has the workflow read its row, which may be final, and end if it is. */
const stopSignal = defineSignal('stop')

const deliveryStateQuery = defineQuery<DeliverySnapshot>('deliveryState')

/**
 * Runs one delivery from its next attempt to its end (spec 3.1 and 8.1). The rows in PostgreSQL are the truth, and signals
 * only wake the workflow to read its row. An exhausted delivery completes the workflow with `failed`: a failed workflow
 * would mean a fault of ours. A cancelled run finishes the attempt under way and leaves the next wait to another run: only
 * the row ends a delivery. A long history, of an endpoint that hangs for hours, is continued as new too.
 */
export function deliverEvent(input: DeliverEventInput): Promise<DeliverEventResult> {
  return ignoreCancellation((isCancelRequested) => {
    const snapshot = firstSnapshot(input)
    const wakeUps = { retryRequested: false, rowChanged: false }
    setHandler(deliveryStateQuery, () => snapshot)
    setHandler(retrySignal, (message) => {
      if (message?.isRecorded === true) wakeUps.rowChanged = true
      else wakeUps.retryRequested = true
    })
    setHandler(stopSignal, () => {
      wakeUps.rowChanged = true
    })
    return runDelivery(input, snapshot, {
      nowMs: () => Date.now(),
      wakeUps,
      isCancelRequested,
      // Histories of release 0.1 became longer.
      isHistoryLong: () => workflowInfo().continueAsNewSuggested && patched('continue-as-new'),
      wait: async (ms, summary, isOver) => {
        await condition(isOver, ms, { summary })
      },
      makeAttempt: (request) => makeAttempt(input, request),
      requestRetry: () => requestRetry(input),
      show: (shown) => showDelivery(shown, input.recorded),
      indexState,
      isIndexedAsWaiting,
      continueAsNew: (successor) => continueAsNew<typeof deliverEvent>(successor),
    })
  })
}

/** Requests an attempt. It is not made before the row is due. */
function makeAttempt(
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
async function requestRetry({ organisationId, webhookId, deliveryId }: DeliverEventInput): Promise<void> {
  await activities.requestRetry.executeWithOptions(
    { ...ACTIVITY_OPTIONS, summary: 'record a retry requested by signal' },
    [{ organisationId, webhookId, deliveryId }],
  )
}

/**
 * Sets the current details in the Temporal UI: the last outcome and the next attempt, and a first attempt that was
 * `recorded` before the workflow began. Adds no event to the history.
 */
function showDelivery(snapshot: DeliverySnapshot, recorded?: RecordedAttempt): void {
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
function indexState(state: DeliveryState): void {
  upsertSearchAttributes({ DeliveryState: [state] })
}

/** True when `DeliveryState` is `waiting` already. */
function isIndexedAsWaiting(): boolean {
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

import {
  condition,
  continueAsNew,
  defineQuery,
  defineSignal,
  patched,
  proxyActivities,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow'
import type { Activities } from '../activities/index.ts'
import { indexState, isIndexedAsWaiting, showDelivery } from './delivery-details.ts'
import { firstSnapshot, runDelivery } from './delivery-loop.ts'
import type {
  DeliverEventInput,
  DeliverEventResult,
  DeliverySnapshot,
} from '../src/domain/workflow-inputs.ts'
import { attemptQueue, type AttemptOutcome, type AttemptRequest } from '../src/domain/attempt-outcome.ts'
import { attemptName } from '../src/domain/retry-schedule.ts'
import { ACTIVITY_OPTIONS, ignoreCancellation } from './run-to-end.ts'

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

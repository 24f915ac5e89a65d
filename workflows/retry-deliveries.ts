import { continueAsNew, proxyActivities, setCurrentDetails, sleep, workflowInfo } from '@temporalio/workflow'
import type { Activities } from '../activities/index.ts'
import { ACTIVITY_OPTIONS, ignoreCancellation } from './run-to-end.ts'
import type { RetryDeliveriesInput } from '../src/domain/workflow-inputs.ts'

const { advanceRetryJob } = proxyActivities<Activities>(ACTIVITY_OPTIONS)

/** Delay between two steps: doubled while no attempt ends. */
const MIN_DELAY_MS = 500
const MAX_DELAY_MS = 5_000

/**
 * Runs one retry job (spec 4.2) in steps, whose progress is in the database. A step waits for no attempt, so jobs never
 * occupy the slots that their attempts need. A cancelled run is succeeded by another after its step.
 */
export function retryDeliveries(input: RetryDeliveriesInput): Promise<void> {
  return ignoreCancellation((isCancelRequested) => run(input, isCancelRequested))
}

async function run(input: RetryDeliveriesInput, isCancelRequested: () => boolean): Promise<void> {
  setCurrentDetails(
    `Retrying deliveries, a few dozen of each webhook at a time. Progress: retry job ${input.jobId}.`,
  )
  let delayMs = MIN_DELAY_MS
  for (;;) {
    const { isRunning, hasAdvanced } = await advanceRetryJob(input)
    if (!isRunning) break
    delayMs = hasAdvanced ? MIN_DELAY_MS : Math.min(delayMs * 2, MAX_DELAY_MS)
    await sleep(delayMs, { summary: 'until the next step' })
    if (isCancelRequested() || workflowInfo().continueAsNewSuggested)
      await continueAsNew<typeof retryDeliveries>(input)
  }
  setCurrentDetails('Done: every delivery that it covered has been attempted, or no longer needed it.')
}

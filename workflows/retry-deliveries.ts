import { continueAsNew, proxyActivities, setCurrentDetails, sleep, workflowInfo } from '@temporalio/workflow'
import type { Activities } from '../activities/index.ts'
import type { RetryDeliveriesInput } from './messages.ts'

/** Only for faults of ours, without an end. The job keeps its place in the database and goes on there. */
const { advanceJob } = proxyActivities<Activities>({
  startToCloseTimeout: '1 hour',
  heartbeatTimeout: '10 seconds',
  retry: { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '1 minute' },
})

/** Between two steps: short while deliveries come through, longer while a receiver keeps them all waiting. */
const SHORTEST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 5_000

/**
 * One retry-deliveries call (spec 4.2), step by step. A step waits for no attempt, so jobs never hold the slots that
 * the attempts they wait for need.
 */
export async function retryDeliveries(input: RetryDeliveriesInput): Promise<void> {
  setCurrentDetails(
    `Retrying deliveries, a few dozen of each webhook at a time. Progress: retry job ${input.jobId}.`,
  )
  let pauseMs = SHORTEST_PAUSE_MS
  for (;;) {
    const { running, moved } = await advanceJob(input)
    if (!running) break
    pauseMs = moved ? SHORTEST_PAUSE_MS : Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
    await sleep(pauseMs, { summary: 'until the next step' })
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof retryDeliveries>(input)
  }
  setCurrentDetails('Done: every delivery that it covered has been attempted, or no longer needed it.')
}

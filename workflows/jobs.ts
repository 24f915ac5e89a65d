import { proxyActivities, setCurrentDetails } from '@temporalio/workflow'
import type { Activities } from '../activities/index.ts'
import { ACTIVITY_OPTIONS, runInSteps } from './run-to-end.ts'
import type {
  EraseOrganisationInput,
  PurgeInput,
  PurgeResult,
  RetryDeliveriesInput,
} from '../src/domain/workflow-inputs.ts'

const { advanceRetryJob, eraseOrganisation: eraseStep } = proxyActivities<Activities>(ACTIVITY_OPTIONS)

/** Delay between two steps that advance. */
const RETRY_DELAY_MS = 500
const ERASE_DELAY_MS = 100

/**
 * Runs one retry job (spec 4.2) in steps, whose progress is in the database. A step waits for no attempt, so jobs never
 * occupy the slots that their attempts need.
 */
export function retryDeliveries(input: RetryDeliveriesInput): Promise<void> {
  setCurrentDetails(
    `Retrying deliveries, a few dozen of each webhook at a time. Progress: retry job ${input.jobId}.`,
  )
  return runInSteps(input, RETRY_DELAY_MS, async () => {
    const { isRunning, ...step } = await advanceRetryJob(input)
    if (!isRunning)
      setCurrentDetails('Done: every delivery that it covered has been attempted, or no longer needed it.')
    return { ...step, isDone: !isRunning }
  })
}

/** Erases one organisation in steps, whose progress is in the database. An attempt under way is waited for. */
export function eraseOrganisation(input: EraseOrganisationInput): Promise<void> {
  return runInSteps(input, ERASE_DELAY_MS, async () => {
    const step = await eraseStep(input)
    const { deliveries, attempts, events } = step.erased
    const counts = `${deliveries} deliveries, ${attempts} attempts and ${events} events`
    setCurrentDetails(step.isDone ? `Erased, with ${counts}.` : `Erasing: ${counts} so far.`)
    return step
  })
}

/** What fails in three passes, or by the end of the run, is left to the next run of the schedule. */
const { purge: purgePass } = proxyActivities<Activities>({
  ...ACTIVITY_OPTIONS,
  retry: { ...ACTIVITY_OPTIONS.retry, maximumAttempts: 3 },
})

/** One run of the retention schedule: deletes what is older than its limit. */
export async function purge(limits: PurgeInput): Promise<PurgeResult> {
  const { completedDays, failedDays } = limits
  setCurrentDetails(
    `Deleting deliveries completed more than ${completedDays} days ago, and failed or stopped more than ${failedDays} days ago.`,
  )
  const result = await purgePass(limits)
  const counts = `${result.deliveries} deliveries and ${result.events} events`
  setCurrentDetails(result.finished ? `Deleted ${counts}.` : `Deleted ${counts}; the next run continues.`)
  return result
}

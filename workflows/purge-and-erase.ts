import { continueAsNew, proxyActivities, setCurrentDetails, sleep, workflowInfo } from '@temporalio/workflow'
import type { Activities } from '../activities/index.ts'
import { ACTIVITY_OPTIONS, ignoreCancellation } from './run-to-end.ts'
import type { EraseOrganisationInput, PurgeInput, PurgeResult } from '../src/domain/workflow-inputs.ts'

const { eraseOrganisation: eraseStep } = proxyActivities<Activities>(ACTIVITY_OPTIONS)

/** Delay between two steps: doubled while nothing could be erased, such as during an attempt under way. */
const MIN_DELAY_MS = 100
const MAX_DELAY_MS = 5_000

/** Erases one organisation in steps, whose progress is in the database. A cancelled run is succeeded by another. */
export function eraseOrganisation(input: EraseOrganisationInput): Promise<void> {
  return ignoreCancellation((isCancelRequested) => run(input, isCancelRequested))
}

async function run(input: EraseOrganisationInput, isCancelRequested: () => boolean): Promise<void> {
  let delayMs = MIN_DELAY_MS
  for (;;) {
    const { isDone, hasAdvanced, erased } = await eraseStep(input)
    const counts = `${erased.deliveries} deliveries, ${erased.attempts} attempts and ${erased.events} events`
    setCurrentDetails(isDone ? `Erased, with ${counts}.` : `Erasing: ${counts} so far.`)
    if (isDone) return
    delayMs = hasAdvanced ? MIN_DELAY_MS : Math.min(delayMs * 2, MAX_DELAY_MS)
    await sleep(delayMs, { summary: 'until the next step' })
    if (isCancelRequested() || workflowInfo().continueAsNewSuggested)
      await continueAsNew<typeof eraseOrganisation>(input)
  }
}

/** One pass takes ten minutes at most; the rest is for a database that is unavailable. */
const { purge: purgePass } = proxyActivities<Activities>({
  ...ACTIVITY_OPTIONS,
  startToCloseTimeout: '30 minutes',
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

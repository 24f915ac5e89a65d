import { continueAsNew, proxyActivities, setCurrentDetails, sleep, workflowInfo } from '@temporalio/workflow'
import type { Activities } from '../activities/index.ts'
import { ACTIVITY_OPTIONS } from './activity-options.ts'
import type { EraseOrganisationInput } from '../src/domain/workflow-inputs.ts'
import { outlastCancellation } from './outlast-cancellation.ts'

const activities = proxyActivities<Activities>(ACTIVITY_OPTIONS)

/** Delay between two steps: doubled while nothing could be erased, such as during an attempt under way. */
const MIN_DELAY_MS = 100
const MAX_DELAY_MS = 5_000

/** Erases one organisation in steps, whose progress is in the database. A cancelled run is succeeded by another. */
export function eraseOrganisation(input: EraseOrganisationInput): Promise<void> {
  return outlastCancellation((isCancelRequested) => run(input, isCancelRequested))
}

async function run(input: EraseOrganisationInput, isCancelRequested: () => boolean): Promise<void> {
  let delayMs = MIN_DELAY_MS
  for (;;) {
    const { isDone, hasAdvanced, erased } = await activities.eraseOrganisation(input)
    const counts = `${erased.deliveries} deliveries, ${erased.attempts} attempts and ${erased.events} events`
    setCurrentDetails(isDone ? `Erased, with ${counts}.` : `Erasing: ${counts} so far.`)
    if (isDone) return
    delayMs = hasAdvanced ? MIN_DELAY_MS : Math.min(delayMs * 2, MAX_DELAY_MS)
    await sleep(delayMs, { summary: 'until the next step' })
    if (isCancelRequested() || workflowInfo().continueAsNewSuggested)
      await continueAsNew<typeof eraseOrganisation>(input)
  }
}

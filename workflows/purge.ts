import { proxyActivities, setCurrentDetails } from '@temporalio/workflow'
import type { Activities } from '../activities/index.ts'
import { ACTIVITY_OPTIONS } from './activity-options.ts'
import type { PurgeInput, PurgeResult } from '../src/domain/workflow-inputs.ts'

/** One pass takes ten minutes at most; the rest is for a database that is unavailable. */
const activities = proxyActivities<Activities>({
  ...ACTIVITY_OPTIONS,
  startToCloseTimeout: '30 minutes',
})

/** One run of the retention schedule: deletes what is older than its limit. */
export async function purge(limits: PurgeInput): Promise<PurgeResult> {
  const { completedDays, failedDays } = limits
  setCurrentDetails(
    `Deleting deliveries completed more than ${completedDays} days ago, and failed or stopped more than ${failedDays} days ago.`,
  )
  const result = await activities.purge(limits)
  const counts = `${result.deliveries} deliveries and ${result.events} events`
  setCurrentDetails(result.finished ? `Deleted ${counts}.` : `Deleted ${counts}; the next run continues.`)
  return result
}

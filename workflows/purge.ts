import { proxyActivities, setCurrentDetails } from '@temporalio/workflow'
import type { Activities } from '../activities/index.ts'
import type { PurgeInput, PurgeResult } from './messages.ts'

/** Only for faults of ours. One pass takes ten minutes at most; the rest is for a database that is away. */
const activities = proxyActivities<Activities>({
  startToCloseTimeout: '30 minutes',
  heartbeatTimeout: '10 seconds',
  retry: { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '1 minute' },
})

/** One turn of the retention schedule: deletes what has been kept for long enough. */
export async function purge(limits: PurgeInput): Promise<PurgeResult> {
  const { completedDays, failedDays } = limits
  setCurrentDetails(
    `Deleting deliveries completed more than ${completedDays} days ago, and failed or stopped more than ${failedDays} days ago.`,
  )
  const result = await activities.purge(limits)
  const counts = `${result.deliveries} deliveries and ${result.events} events`
  setCurrentDetails(
    result.finished ? `Deleted ${counts}.` : `Deleted ${counts}; the next turn goes on with what is left.`,
  )
  return result
}

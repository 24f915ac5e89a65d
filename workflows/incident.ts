import { condition, continueAsNew, proxyActivities, setHandler, workflowInfo } from '@temporalio/workflow'
import type { Activities } from '../activities/index.ts'
import {
  nextRound,
  nextTimer,
  unsettled,
  type SendingTimer,
  type StreakTimer,
} from '../src/domain/incident-rules.ts'
import { changedSignal, type IncidentInput } from './messages.ts'
import { showIncident, whatIsAwaited } from './show-incident.ts'

/** Only for faults of ours, and without an end. A look is short; the long deadline is for a mail server that is slow. */
const activities = proxyActivities<Activities>({
  startToCloseTimeout: '1 hour',
  heartbeatTimeout: '10 seconds',
  retry: { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '1 minute' },
})

/**
 * One incident of a webhook, from its first failure to its end (spec 3.3 and 6.4). The row is the truth: the workflow
 * looks at it when a signal says that it changed, when the failures have lasted long enough for notification 1, and
 * when something that was refused is to be sent again. It ends when the incident is closed and every notification is
 * settled.
 */
export async function incident(input: IncidentInput): Promise<void> {
  const { organisationId, incidentId, notifyAfterMs } = input
  const news = { told: false }
  setHandler(changedSignal, () => {
    news.told = true
  })
  let timer: StreakTimer | null = null
  // What is left to be sent: when it is tried again, and how often it has been tried.
  let again: SendingTimer | null = null
  for (;;) {
    news.told = false
    const dueFor: number | null = timer !== null && timer.dueAtMs <= Date.now() ? timer.sinceMs : null
    const retry: boolean = again !== null && again.atMs <= Date.now()
    const { look, notifications } = await activities.keepIncident({
      organisationId,
      incidentId,
      dueFor,
      notifyAfterMs,
      retry,
    })
    if (look === null) return
    const left = unsettled(notifications)
    timer = nextTimer(timer, look.streak, Date.now(), notifyAfterMs)
    again = nextRound(again, left, retry, Date.now())
    showIncident(look, notifications, timer)
    if (!look.open && left === 0) return

    const wakeAtMs = Math.min(timer?.dueAtMs ?? Infinity, again?.atMs ?? Infinity)
    const waitMs = wakeAtMs - Date.now()
    const options = { summary: whatIsAwaited(left, timer) }
    if (waitMs === Infinity) await condition(() => news.told)
    else if (waitMs > 0) await condition(() => news.told, waitMs, options)
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof incident>(input)
  }
}

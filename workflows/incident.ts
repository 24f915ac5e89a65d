import {
  condition,
  continueAsNew,
  defineSignal,
  proxyActivities,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow'
import type { Activities } from '../activities/index.ts'
import {
  nextRound,
  nextTimer,
  unsettled,
  type SendingTimer,
  type StreakTimer,
} from '../src/domain/notification-rules.ts'
import { ACTIVITY_OPTIONS, ignoreCancellation } from './run-to-end.ts'
import type { IncidentInput } from '../src/domain/workflow-inputs.ts'
import { describeWait, showIncident } from './incident-details.ts'

const { updateIncident } = proxyActivities<Activities>(ACTIVITY_OPTIONS)

/** The row has changed: opened, failing again, exhausted or closed. */
const changedSignal = defineSignal('changed')

/**
 * Runs one incident of a webhook, from its first failure to its end (spec 3.3 and 6.4). The row is the truth: the workflow
 * has it evaluated after a signal, when notification 1 is due, and when refused notifications are to be sent again. It
 * ends when the incident is closed and every notification is settled. A cancelled run is succeeded by another.
 */
export function incident(input: IncidentInput): Promise<void> {
  return ignoreCancellation((isCancelRequested) => run(input, isCancelRequested))
}

async function run(input: IncidentInput, isCancelRequested: () => boolean): Promise<void> {
  const { organisationId, incidentId, notifyAfterMs } = input
  let isSignalled = false
  setHandler(changedSignal, () => {
    isSignalled = true
  })
  let timer: StreakTimer | null = null
  let sendingTimer: SendingTimer | null = null
  for (;;) {
    isSignalled = false
    const dueFor: number | null = timer !== null && timer.dueAtMs <= Date.now() ? timer.sinceMs : null
    const retry: boolean = sendingTimer !== null && sendingTimer.atMs <= Date.now()
    const { evaluation, notifications } = await updateIncident({
      organisationId,
      incidentId,
      dueFor,
      notifyAfterMs,
      retry,
    })
    if (evaluation === null) return
    const left = unsettled(notifications)
    timer = nextTimer(timer, evaluation.streak, Date.now(), notifyAfterMs)
    sendingTimer = nextRound(sendingTimer, left, retry, Date.now())
    showIncident(evaluation, notifications, timer)
    if (!evaluation.open && left === 0) return

    const wakeAtMs = Math.min(timer?.dueAtMs ?? Infinity, sendingTimer?.atMs ?? Infinity)
    const waitMs = wakeAtMs - Date.now()
    const options = { summary: describeWait(left, timer) }
    const isWoken = (): boolean => isSignalled || isCancelRequested()
    if (waitMs === Infinity) await condition(isWoken)
    else if (waitMs > 0) await condition(isWoken, waitMs, options)
    if (isCancelRequested() || workflowInfo().continueAsNewSuggested)
      await continueAsNew<typeof incident>(input)
  }
}

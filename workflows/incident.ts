import {
  condition,
  continueAsNew,
  defineSignal,
  proxyActivities,
  setHandler,
  workflowInfo,
  setCurrentDetails,
} from '@temporalio/workflow'
import type { Activities } from '../activities/index.ts'
import {
  formatCount,
  nextRound,
  nextTimer,
  unsettled,
  type SendingTimer,
  type StreakTimer,
  type IncidentEvaluation,
  type NotificationCounts,
  type NotificationKind,
} from '../src/domain/notification-rules.ts'
import { ACTIVITY_OPTIONS, ignoreCancellation } from './run-to-end.ts'
import type { IncidentInput } from '../src/domain/workflow-inputs.ts'
import { describeFailure } from '../src/domain/attempt-outcome.ts'

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

/** Sets the current details in the Temporal UI: the state of the incident, its notifications, and the next step. */
function showIncident(
  evaluation: IncidentEvaluation,
  notifications: NotificationCounts,
  timer: StreakTimer | null,
): void {
  const lines = [
    '| | |',
    '|---|---|',
    `| Failing since | ${timeOf(evaluation.openedAtMs)} |`,
    `| Now | ${describeState(evaluation)} |`,
    `| Last failure | ${describeFailure(evaluation) ?? 'deleted by retention'} |`,
    `| Waiting for a retry | ${formatCount(evaluation.waiting)} |`,
    `| Permanently failed | ${formatCount(evaluation.failed)} |`,
    `| Notification 1, failing continuously | ${describeNotification(1, evaluation, notifications)} |`,
    `| Notification 2, first permanently failed | ${describeNotification(2, evaluation, notifications)} |`,
    `| Waits for | ${describeNextStep(evaluation, notifications, timer)} |`,
  ]
  setCurrentDetails(lines.join('\n'))
}

/** Returns the summary of the timer in the Temporal UI. */
function describeWait(unsettled: number, timer: StreakTimer | null): string {
  if (unsettled > 0) return `to send ${unsettled} notifications`
  return timer === null ? 'a change' : 'notification 1, unless a delivery succeeds'
}

function describeState(evaluation: IncidentEvaluation): string {
  if (!evaluation.open) return 'over'
  if (!evaluation.live) return 'open, but the webhook is disabled: notifications are paused'
  if (evaluation.waiting + evaluation.failed === 0)
    return 'open until a delivery succeeds; none is waiting or permanently failed'
  return evaluation.streak === null && evaluation.notifiedAtMs[1] === null
    ? 'open; the latest attempt succeeded'
    : 'open; deliveries fail'
}

function describeNotification(
  kind: NotificationKind,
  evaluation: IncidentEvaluation,
  counts: NotificationCounts,
): string {
  const at = evaluation.notifiedAtMs[kind]
  if (at === null) return evaluation.open ? 'not due yet' : 'not sent'
  const own = counts.filter((count) => count.kind === kind)
  const states = own.map(({ state, count }) => `${count} ${state}`).join(', ')
  return `${timeOf(at)}: ${states === '' ? 'no recipients' : states}`
}

function describeNextStep(
  evaluation: IncidentEvaluation,
  counts: NotificationCounts,
  timer: StreakTimer | null,
): string {
  const sending = counts.some(({ state }) => state === 'pending' || state === 'sending')
  if (sending) return 'the next try to send notifications'
  if (!evaluation.open) return 'nothing'
  if (timer !== null) return `notification 1 at ${timeOf(timer.dueAtMs)}, unless a delivery succeeds`
  if (evaluation.notifiedAtMs[1] === null) return 'the next failure, or the end'
  return evaluation.notifiedAtMs[2] === null ? 'a permanently failed delivery, or the end' : 'the end'
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString()
}

import { setCurrentDetails } from '@temporalio/workflow'
import { describeFailure } from '../src/domain/attempt-outcome.ts'
import type {
  IncidentEvaluation,
  NotificationCounts,
  NotificationKind,
  StreakTimer,
} from '../src/domain/notification-rules.ts'

/** Sets the current details in the Temporal UI: the state of the incident, its notifications, and the next step. */
export function showIncident(
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
    `| Waiting for a retry | ${evaluation.waiting} |`,
    `| Permanently failed | ${evaluation.failed} |`,
    `| Notification 1, failing continuously | ${describeNotification(1, evaluation, notifications)} |`,
    `| Notification 2, first permanently failed | ${describeNotification(2, evaluation, notifications)} |`,
    `| Waits for | ${describeNextStep(evaluation, notifications, timer)} |`,
  ]
  setCurrentDetails(lines.join('\n'))
}

/** Returns the summary of the timer in the Temporal UI. */
export function describeWait(unsettled: number, timer: StreakTimer | null): string {
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

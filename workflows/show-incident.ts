import { setCurrentDetails } from '@temporalio/workflow'
import { describeFailure } from '../src/domain/attempt-outcome.ts'
import type {
  IncidentLook,
  NotificationCounts,
  NotificationKind,
  StreakTimer,
} from '../src/domain/incident-rules.ts'

/** Writes the details panel of the Temporal UI: how the endpoint stands, who was told when, what is waited for. */
export function showIncident(
  look: IncidentLook,
  notifications: NotificationCounts,
  timer: StreakTimer | null,
): void {
  const lines = [
    '| | |',
    '|---|---|',
    `| Failing since | ${timeOf(look.openedAtMs)} |`,
    `| Now | ${standing(look)} |`,
    `| Last failure | ${describeFailure(look) ?? 'not kept any more'} |`,
    `| Waiting for a retry | ${look.waiting} |`,
    `| Permanently failed | ${look.failed} |`,
    `| Notification 1, failing continuously | ${notification(1, look, notifications)} |`,
    `| Notification 2, first permanently failed | ${notification(2, look, notifications)} |`,
    `| Waits for | ${awaited(look, notifications, timer)} |`,
  ]
  setCurrentDetails(lines.join('\n'))
}

/** What the timer says in the Temporal UI. */
export function whatIsAwaited(unsettled: number, timer: StreakTimer | null): string {
  if (unsettled > 0) return `to send ${unsettled} notifications`
  return timer === null ? 'a change' : 'notification 1, unless a delivery succeeds'
}

function standing(look: IncidentLook): string {
  if (!look.open) return 'over'
  if (!look.live) return 'open, but the webhook is disabled: notifications are held'
  if (look.waiting + look.failed === 0)
    return 'open until a delivery succeeds; none waits or is permanently failed'
  return look.streak === null && look.notifiedAtMs[1] === null
    ? 'open; the latest attempt succeeded'
    : 'open; deliveries fail'
}

function notification(kind: NotificationKind, look: IncidentLook, counts: NotificationCounts): string {
  const at = look.notifiedAtMs[kind]
  if (at === null) return look.open ? 'not due yet' : 'not sent'
  const own = counts.filter((count) => count.kind === kind)
  const states = own.map(({ state, count }) => `${count} ${state}`).join(', ')
  return `${timeOf(at)}: ${states === '' ? 'nobody to tell' : states}`
}

function awaited(look: IncidentLook, counts: NotificationCounts, timer: StreakTimer | null): string {
  const sending = counts.some(({ state }) => state === 'pending' || state === 'sending')
  if (sending) return 'the next try to send what was refused or not yet sent'
  if (!look.open) return 'nothing'
  if (timer !== null) return `notification 1 at ${timeOf(timer.dueAtMs)}, unless a delivery succeeds`
  if (look.notifiedAtMs[1] === null) return 'the next failure, or the end'
  return look.notifiedAtMs[2] === null ? 'a permanently failed delivery, or the end' : 'the end'
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString()
}

import type { NotificationChannel, NotificationKind } from '../domain/incident-rules.ts'
import { seconds, type Define } from './define.ts'

/**
 * `attempted`: the dispatcher made the first attempt itself. `followed`: the workflow of such a delivery that was completed.
 * `returned`: not tried, and given back to the sweep.
 */
type StartResult = 'started' | 'attempted' | 'followed' | 'refused' | 'returned'

type SweptKind = 'delivery' | 'stopped' | 'retry_job' | 'incident'

type RecoveryReason = 'gone' | 'stuck'

/** `refused`: not accepted, and to be tried again. */
type SendState = 'sent' | 'refused' | 'failed' | 'unknown'

type EndedNotification = { kind: NotificationKind; channel: NotificationChannel; state: SendState }

export type KeeperMetrics = {
  startEnded(result: StartResult): void
  sweepStarted(): void
  sweepTook(kind: SweptKind, rows: number): void
  sweepPassed(durationMs: number): void
  /** A workflow was started anew: it was `gone`, or `stuck` and terminated first. */
  workflowRecovered(reason: RecoveryReason): void
  notificationEnded(notification: EndedNotification): void
}

const START_RESULTS: readonly StartResult[] = ['started', 'attempted', 'followed', 'refused', 'returned']
const SWEPT_KINDS: readonly SweptKind[] = ['delivery', 'stopped', 'retry_job', 'incident']
const SEND_STATES: readonly SendState[] = ['sent', 'refused', 'failed', 'unknown']
const CHANNELS: readonly NotificationChannel[] = ['email', 'push']
const KINDS: readonly NotificationKind[] = [1, 2]

/** In seconds. A pass comes every second, and takes some milliseconds where there is nothing to do. */
const PASS_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** The dispatcher, the sweep, and the sending of notifications. */
export function createKeeperMetrics(define: Define): KeeperMetrics {
  const starts = define.counter('starter_starts_total', 'Deliveries begun with, by what came of it', [
    'result',
  ])
  const swept = define.counter('sweep_rows_total', 'Rows that the sweep took to look after', ['kind'])
  const recovered = define.counter(
    'sweep_recovered_workflows_total',
    'Workflows that the sweep started anew, since they were gone or stuck',
    ['reason'],
  )
  const lastPass = define.gauge(
    'sweep_last_pass_timestamp_seconds',
    'When the sweep last came to the end of a pass; nothing in a process without a worker',
  )
  const passes = define.histogram('sweep_duration_seconds', 'How long a pass of the sweep took', PASS_BUCKETS)
  const notifications = define.counter(
    'notifications_total',
    'Messages about incidents, by what came of trying to send them',
    ['kind', 'channel', 'state'],
  )

  // At 0 a process without a worker would seem to have had its last pass in 1970.
  lastPass.remove()
  for (const result of START_RESULTS) starts.inc({ result }, 0)
  for (const kind of SWEPT_KINDS) swept.inc({ kind }, 0)
  for (const reason of ['gone', 'stuck']) recovered.inc({ reason }, 0)
  for (const kind of KINDS)
    for (const channel of CHANNELS)
      for (const state of SEND_STATES) notifications.inc({ kind, channel, state }, 0)

  return {
    startEnded: (result) => starts.inc({ result }),
    sweepStarted: () => lastPass.setToCurrentTime(),
    sweepTook: (kind, rows) => swept.inc({ kind }, rows),
    sweepPassed(durationMs) {
      lastPass.setToCurrentTime()
      passes.observe(seconds(durationMs))
    },
    workflowRecovered: (reason) => recovered.inc({ reason }),
    notificationEnded: (notification) => notifications.inc(notification),
  }
}

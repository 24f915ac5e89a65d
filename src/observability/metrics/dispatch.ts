import type { NotificationChannel, NotificationKind } from '../../domain/incident-rules.ts'
import { seconds, type Define } from './define.ts'

/**
 * `started`: the workflow. `inline`: the process made the attempt. `followed`: the workflow of a delivery that has ended
 * without one. `released`: to its row, without a try.
 */
type StartResult = 'started' | 'inline' | 'followed' | 'refused' | 'released'

type SweptKind = 'delivery' | 'stopped' | 'retry_job' | 'incident' | 'erasure'

type RecoveryReason = 'gone' | 'stuck'

/** `refused`: not accepted, and retried. */
type SendState = 'sent' | 'refused' | 'failed' | 'unknown'

type EndedNotification = { kind: NotificationKind; channel: NotificationChannel; state: SendState }

export type DispatchMetrics = {
  startEnded(result: StartResult): void
  sweepStarted(): void
  sweepTook(kind: SweptKind, rows: number): void
  sweepPassed(durationMs: number): void
  /** A workflow was restarted: it was `gone`, or `stuck` and terminated first. */
  workflowRecovered(reason: RecoveryReason): void
  notificationEnded(notification: EndedNotification): void
}

const START_RESULTS: readonly StartResult[] = ['started', 'inline', 'followed', 'refused', 'released']
const SWEPT_KINDS: readonly SweptKind[] = ['delivery', 'stopped', 'retry_job', 'incident', 'erasure']
const SEND_STATES: readonly SendState[] = ['sent', 'refused', 'failed', 'unknown']
const CHANNELS: readonly NotificationChannel[] = ['email', 'push']
const KINDS: readonly NotificationKind[] = [1, 2]

/** In seconds. A pass runs every second, and takes some milliseconds when there is nothing to do. */
const PASS_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** Defines the metrics of the dispatcher, the sweeper and the sending of notifications. */
export function createDispatchMetrics(define: Define): DispatchMetrics {
  const starts = define.counter(
    'dispatched_deliveries_total',
    'Deliveries that the dispatcher took, by result',
    ['result'],
  )
  const swept = define.counter('sweep_rows_total', 'Rows that the sweeper took', ['kind'])
  const recovered = define.counter(
    'sweep_recovered_workflows_total',
    'Workflows that the sweeper restarted because they were gone or stuck',
    ['reason'],
  )
  const lastPass = define.gauge(
    'sweep_last_pass_timestamp_seconds',
    'Time of the end of the latest sweep; absent in a process without a worker',
  )
  const passes = define.histogram('sweep_duration_seconds', 'Duration of a pass of the sweeper', PASS_BUCKETS)
  const notifications = define.counter('notifications_total', 'Notifications, by result of sending', [
    'kind',
    'channel',
    'state',
  ])

  // At 0, a process without a worker would report its latest sweep in 1970.
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

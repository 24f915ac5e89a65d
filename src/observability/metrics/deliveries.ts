import { FAILURE_CODES, type AttemptTrigger, type FailureCode } from '../../domain/attempt-outcome.ts'
import type { FinalState } from '../../domain/delivery-state.ts'
import { DELAY_BUCKETS, seconds, type Define } from './define.ts'
import type { NotificationChannel, NotificationKind } from '../../domain/notification-rules.ts'

/** An attempt that this process recorded. */
export type RecordedAttempt = {
  succeeded: boolean
  failureCode: FailureCode | null
  trigger: AttemptTrigger
  durationMs: number
  /** The delivery's new state. */
  state: FinalState | 'waiting'
  /** From the commit of a delivery, or a later change of its webhook, to its first POST; null for other attempts and after a deferral. */
  firstDelayMs: number | null
  /** The delay between a scheduled retry's due time and its start; null for others. */
  latenessMs: number | null
}

/** In seconds. The deadline of an attempt is 15 by default, and 60 at most. */
const DURATION_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60]

const FINAL_STATES: readonly FinalState[] = ['completed', 'failed', 'stopped']
const TRIGGERS: readonly AttemptTrigger[] = ['schedule', 'retry']

export function createAttemptMetrics(define: Define) {
  const events = define.counter(
    'events_published_total',
    'Events committed, test events included; a repeat with the same Idempotency-Key is none',
  )
  const committed = define.counter('deliveries_committed_total', 'Deliveries committed with their events')
  const ended = define.counter(
    'deliveries_total',
    'Deliveries that became completed, failed or stopped; one that a user retries ends again',
    ['state'],
  )
  const attempts = define.counter(
    'attempts_total',
    'Attempts recorded: succeeded (failure_code none) or failed; trigger is schedule or retry',
    ['outcome', 'failure_code', 'trigger'],
  )
  const inFlight = define.gauge('attempts_in_flight', 'Attempts that have a slot and are not recorded yet')
  const deferred = define.counter(
    'attempts_deferred_total',
    'Attempts deferred because their endpoint had no free slot',
  )
  const refused = define.counter(
    'attempt_recording_errors_total',
    'Database errors while the outcome of an attempt was recorded; each is retried',
  )
  const superseded = define.counter(
    'attempts_superseded_total',
    'Failed attempts that were not recorded because another run had taken their row',
  )
  const repeated = define.counter(
    'attempts_repeated_total',
    'Attempts repeated because this process was paused and their POST has no outcome',
  )
  const durations = define.histogram(
    'attempt_duration_seconds',
    'Duration of a POST, from its start to its outcome',
    DURATION_BUCKETS,
    ['outcome'],
  )
  const firstDelays = define.histogram(
    'first_attempt_delay_seconds',
    'Time from the commit of a delivery, or a later change of its webhook, to its first POST, without deferred ones',
    DELAY_BUCKETS,
  )
  const lateness = define.histogram(
    'retry_lateness_seconds',
    'Time from the due time of a retry of the schedule to its POST, without deferred ones',
    DELAY_BUCKETS,
  )

  for (const state of FINAL_STATES) ended.inc({ state }, 0)
  for (const outcome of ['succeeded', 'failed']) durations.zero({ outcome })
  for (const trigger of TRIGGERS) {
    attempts.inc({ outcome: 'succeeded', failure_code: 'none', trigger }, 0)
    for (const code of FAILURE_CODES) attempts.inc({ outcome: 'failed', failure_code: code, trigger }, 0)
  }

  return {
    eventPublished(deliveries: number): void {
      events.inc()
      committed.inc(deliveries)
    },
    /** Has taken a slot; `attemptEnded` when it is recorded or abandoned. */
    attemptBegun: () => inFlight.inc(),
    attemptEnded: () => inFlight.dec(),
    attemptDeferred: () => deferred.inc(),
    attemptRecorded(attempt: RecordedAttempt): void {
      const { succeeded, failureCode, trigger, durationMs, state, firstDelayMs, latenessMs } = attempt
      const outcome = succeeded ? 'succeeded' : 'failed'
      attempts.inc({ outcome, failure_code: failureCode ?? 'none', trigger })
      if (state !== 'waiting') ended.inc({ state })
      // Nothing was sent, so there is no duration.
      if (failureCode === 'worker_lost') return
      durations.observe({ outcome }, seconds(durationMs))
      if (firstDelayMs !== null) firstDelays.observe(seconds(firstDelayMs))
      if (latenessMs !== null) lateness.observe(seconds(latenessMs))
    },
    /** The database refused the outcome of an attempt, which is retried. */
    attemptNotRecorded: () => refused.inc(),
    /** Failed after another run had taken its row: nothing was recorded. */
    attemptSuperseded: () => superseded.inc(),
    /** Its POST has no outcome because this process was paused: it is repeated. */
    attemptRepeated: () => repeated.inc(),
    /** Ended without an attempt. */
    deliveriesStopped: (count: number) => ended.inc({ state: 'stopped' }, count),
  }
}

/**
 * `started`: the workflow. `inline`: the process made the attempt. `followed`: the workflow of a delivery that has ended
 * without one. `released`: to its row, without a try.
 */
const START_RESULTS = ['started', 'inline', 'followed', 'refused', 'released'] as const

const SWEPT_KINDS = ['delivery', 'stopped', 'retry_job', 'incident', 'erasure'] as const

/** Why a workflow was restarted: it was `gone`, or `stuck` and terminated first. */
const RECOVERY_REASONS = ['gone', 'stuck'] as const

/** `refused`: not accepted, and retried. `obsolete`: the recipient is no longer one, or its channel is not configured. */
const SEND_STATES = ['sent', 'refused', 'failed', 'unknown', 'obsolete'] as const
const CHANNELS: readonly NotificationChannel[] = ['email', 'push']
const KINDS: readonly NotificationKind[] = [1, 2]

type EndedNotification = {
  kind: NotificationKind
  channel: NotificationChannel
  state: (typeof SEND_STATES)[number]
}

/** In seconds. A pass runs every second, and takes some milliseconds when there is nothing to do. */
const PASS_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** Defines the metrics of the dispatcher, the sweeper and the sending of notifications. */
export function createDispatchMetrics(define: Define) {
  const starts = define.counter(
    'dispatched_deliveries_total',
    'Deliveries that the dispatcher took: workflow started, attempted inline, workflow followed after the end, refused by Temporal, released to the row',
    ['result'],
  )
  const swept = define.counter(
    'sweep_rows_total',
    'Rows that the sweeper took: delivery, stopped, retry_job, incident, erasure',
    ['kind'],
  )
  const recovered = define.counter(
    'sweep_recovered_workflows_total',
    'Workflows that the sweeper restarted: gone, or stuck and terminated first',
    ['reason'],
  )
  const lastPass = define.gauge(
    'sweep_last_pass_timestamp_seconds',
    'Unix time of the end of the latest sweep; only in a worker',
  )
  const passes = define.histogram('sweep_duration_seconds', 'Duration of a pass of the sweeper', PASS_BUCKETS)
  const notifications = define.counter(
    'notifications_total',
    'Tries to send notification 1 or 2: sent, refused (tried again), failed, unknown, obsolete (no longer a recipient, or not configured)',
    ['kind', 'channel', 'state'],
  )

  // At 0, a process without a worker would report its latest sweep in 1970.
  lastPass.remove()
  for (const result of START_RESULTS) starts.inc({ result }, 0)
  for (const kind of SWEPT_KINDS) swept.inc({ kind }, 0)
  for (const reason of RECOVERY_REASONS) recovered.inc({ reason }, 0)
  for (const kind of KINDS)
    for (const channel of CHANNELS)
      for (const state of SEND_STATES) notifications.inc({ kind, channel, state }, 0)

  return {
    startEnded: (result: (typeof START_RESULTS)[number]) => starts.inc({ result }),
    sweepStarted: () => lastPass.setToCurrentTime(),
    sweepTook: (kind: (typeof SWEPT_KINDS)[number], rows: number) => swept.inc({ kind }, rows),
    sweepPassed(durationMs: number): void {
      lastPass.setToCurrentTime()
      passes.observe(seconds(durationMs))
    },
    workflowRecovered: (reason: (typeof RECOVERY_REASONS)[number]) => recovered.inc({ reason }),
    notificationEnded: (notification: EndedNotification) => notifications.inc(notification),
  }
}

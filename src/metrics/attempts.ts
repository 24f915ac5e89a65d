import { FAILURE_CODES, type AttemptTrigger, type FailureCode } from '../domain/attempt-outcome.ts'
import type { DeliveryState } from '../domain/delivery-state.ts'
import { DELAY_BUCKETS, seconds, type Define } from './define.ts'

type FinalState = Extract<DeliveryState, 'completed' | 'failed' | 'stopped'>

/** An attempt that this process recorded. */
export type RecordedAttempt = {
  succeeded: boolean
  failureCode: FailureCode | null
  trigger: AttemptTrigger
  durationMs: number
  /** What the delivery is now. */
  state: FinalState | 'waiting'
  /** From the commit of a delivery to its first POST; null for other attempts, and where its own webhook held it up. */
  firstDelayMs: number | null
  /** How long after its time a retry of the schedule was begun; null for others. */
  latenessMs: number | null
}

export type AttemptMetrics = {
  eventPublished(deliveries: number): void
  /** Has passed the gate; `attemptEnded` when it is recorded or given up. */
  attemptBegun(): void
  attemptEnded(): void
  attemptDeferred(): void
  attemptRecorded(attempt: RecordedAttempt): void
  /** The database refused the outcome of an attempt; it is tried again. */
  attemptNotRecorded(): void
  /** Failed, but its row had become another run's: nothing was recorded. */
  attemptSuperseded(): void
  /** Its POST has no outcome, since this process was paused: it is made again. */
  attemptRepeated(): void
  /** Came to their end without an attempt. */
  deliveriesStopped(count: number): void
}

/** In seconds. The deadline of an attempt is 15 by default, and 60 at most. */
const DURATION_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60]

const FINAL_STATES: readonly FinalState[] = ['completed', 'failed', 'stopped']
const TRIGGERS: readonly AttemptTrigger[] = ['schedule', 'retry']

export function createAttemptMetrics(define: Define): AttemptMetrics {
  const events = define.counter('events_published_total', 'Events committed, test events included')
  const committed = define.counter('deliveries_committed_total', 'Deliveries committed with their events')
  const ended = define.counter('deliveries_total', 'Deliveries that reached a final state', ['state'])
  const attempts = define.counter('attempts_total', 'Attempts recorded', [
    'outcome',
    'failure_code',
    'trigger',
  ])
  const inFlight = define.gauge('attempts_in_flight', 'Attempts let through by the gate and not recorded yet')
  const deferred = define.counter('attempts_deferred_total', 'Attempts that a full gate turned away')
  const refused = define.counter(
    'attempt_recording_errors_total',
    'Errors of the database while the outcome of an attempt was recorded; each is tried again',
  )
  const superseded = define.counter(
    'attempts_superseded_total',
    'Attempts that failed when another run had taken their row, and were not recorded',
  )
  const repeated = define.counter(
    'attempts_repeated_total',
    'Attempts whose POST had no outcome because this process was paused, and that were made again',
  )
  const durations = define.histogram(
    'attempt_duration_seconds',
    'How long a POST took, from its begin to its outcome',
    DURATION_BUCKETS,
    ['outcome'],
  )
  const firstDelays = define.histogram(
    'first_attempt_delay_seconds',
    'From the commit of a delivery to its first POST, unless a full gate turned it away',
    DELAY_BUCKETS,
  )
  const lateness = define.histogram(
    'retry_lateness_seconds',
    'How long after its time a retry of the schedule began, unless a full gate turned it away',
    DELAY_BUCKETS,
  )

  for (const state of FINAL_STATES) ended.inc({ state }, 0)
  for (const outcome of ['succeeded', 'failed']) durations.zero({ outcome })
  for (const trigger of TRIGGERS) {
    attempts.inc({ outcome: 'succeeded', failure_code: 'none', trigger }, 0)
    for (const code of FAILURE_CODES) attempts.inc({ outcome: 'failed', failure_code: code, trigger }, 0)
  }

  return {
    eventPublished(deliveries) {
      events.inc()
      committed.inc(deliveries)
    },
    attemptBegun: () => inFlight.inc(),
    attemptEnded: () => inFlight.dec(),
    attemptDeferred: () => deferred.inc(),
    attemptRecorded({ succeeded, failureCode, trigger, durationMs, state, firstDelayMs, latenessMs }) {
      const outcome = succeeded ? 'succeeded' : 'failed'
      attempts.inc({ outcome, failure_code: failureCode ?? 'none', trigger })
      if (state !== 'waiting') ended.inc({ state })
      // Nothing was sent for it: there is nothing to time.
      if (failureCode === 'worker_lost') return
      durations.observe({ outcome }, seconds(durationMs))
      if (firstDelayMs !== null) firstDelays.observe(seconds(firstDelayMs))
      if (latenessMs !== null) lateness.observe(seconds(latenessMs))
    },
    attemptNotRecorded: () => refused.inc(),
    attemptSuperseded: () => superseded.inc(),
    attemptRepeated: () => repeated.inc(),
    deliveriesStopped: (count) => ended.inc({ state: 'stopped' }, count),
  }
}

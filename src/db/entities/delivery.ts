import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm'
import type { DeliveryState, StopReason } from '../../domain/delivery-state.ts'
import { Event } from './event.ts'
import { Webhook } from './webhook.ts'
import type { AttemptTrigger, FailureCode } from '../../domain/attempt-outcome.ts'

/**
 * One event on its way to one webhook. `id` is sent as `X-Webhook-Event-ID` on every attempt.
 * This row is the truth about a delivery; its workflow only carries it out. Only the statements in
 * `src/deliveries/protocol` change it, and the checks hold what each state implies.
 */
@Entity('delivery')
@Check(
  'delivery_state_check',
  `"state" IN ('pending', 'in_progress', 'waiting', 'completed', 'failed', 'stopped')`,
)
@Check(
  'delivery_stop_reason_check',
  `"stop_reason" IN ('webhook_disabled', 'webhook_deleted', 'unsubscribed', 'discarded', 'test_failed', 'payload_erased')`,
)
@Check('delivery_open_check', `("completed_at" IS NULL) = ("state" IN ('pending', 'in_progress', 'waiting'))`)
@Check('delivery_sweep_check', `"completed_at" IS NOT NULL OR "sweep_at" IS NOT NULL`)
@Check('delivery_owner_check', `("owner" IS NOT NULL) = ("state" = 'in_progress')`)
@Check('delivery_lease_check', `("owner" IS NULL) = ("lease_until" IS NULL)`)
@Check('delivery_runs_check', `("runs" > 0) = ("state" = 'in_progress') OR "state" = 'stopped'`)
@Check(
  'delivery_attempts_check',
  `"state" IN ('in_progress', 'stopped') OR ("attempts" = 0) = ("state" = 'pending')`,
)
@Check('delivery_due_check', `("next_attempt_at" IS NOT NULL) = ("completed_at" IS NULL AND "attempts" > 0)`)
@Check('delivery_requested_check', `NOT "attempt_requested" OR "state" = 'in_progress'`)
@Check('delivery_retry_check', `NOT "retry_requested" OR "completed_at" IS NULL`)
@Check('delivery_paused_check', `"paused_since" IS NULL OR "state" IN ('pending', 'waiting', 'in_progress')`)
@Check('delivery_stopped_check', `("stop_reason" IS NOT NULL) = ("state" = 'stopped')`)
@Check('delivery_test_check', `NOT "is_test" OR "state" NOT IN ('waiting', 'failed')`)
@Index('delivery_event_idx', ['eventId'])
@Index('delivery_webhook_idx', ['webhookId', 'id'])
@Index('delivery_waiting_idx', ['webhookId', 'id'], { where: "state = 'waiting'" })
@Index('delivery_failed_idx', ['webhookId', 'id'], { where: "state = 'failed'" })
@Index('delivery_stopped_idx', ['webhookId', 'id'], { where: "state = 'stopped' AND NOT is_test" })
@Index('delivery_test_idx', ['webhookId', 'id'], { where: 'is_test' })
@Index('delivery_unresolved_idx', ['webhookId'], {
  where: "state IN ('waiting', 'failed', 'in_progress') AND attempts > 0",
})
@Index('delivery_unstarted_idx', ['webhookId', 'sweepAt'], {
  where: 'completed_at IS NULL AND workflow_started_at IS NULL',
})
@Index('delivery_started_idx', ['webhookId', 'sweepAt'], {
  where: 'completed_at IS NULL AND workflow_started_at IS NOT NULL',
})
@Index('delivery_signal_idx', ['sweepAt'], {
  where: 'completed_at IS NOT NULL AND sweep_at IS NOT NULL AND workflow_started_at IS NOT NULL',
})
@Index('delivery_follow_idx', ['sweepAt'], {
  where: 'completed_at IS NOT NULL AND sweep_at IS NOT NULL AND workflow_started_at IS NULL',
})
@Index('delivery_paused_idx', ['webhookId'], { where: 'paused_since IS NOT NULL' })
@Index('delivery_purge_idx', ['state', 'completedAt'], { where: 'completed_at IS NOT NULL' })
export class Delivery {
  @PrimaryColumn('uuid')
  id!: string

  @Column('uuid', { name: 'event_id' })
  @ForeignKey(() => Event)
  eventId!: string

  @Column('uuid', { name: 'webhook_id' })
  @ForeignKey(() => Webhook)
  webhookId!: string

  @Column('text', { name: 'organisation_id' })
  organisationId!: string

  @Column('text')
  state!: DeliveryState

  /** Why a `stopped` delivery is stopped; null in every other state. */
  @Column('text', { name: 'stop_reason', nullable: true })
  stopReason!: StopReason | null

  /** A test event: it gets one attempt, is never retried, and counts nowhere. */
  @Column('boolean', { name: 'is_test', default: false })
  isTest!: boolean

  /** The payload of its event is erased: nothing is sent, and what its endpoint answers is not kept. */
  @Column('boolean', { name: 'is_erased', default: false })
  isErased!: boolean

  /** Attempts that ended and are recorded. */
  @Column('integer', { default: 0 })
  attempts!: number

  /** Runs of the next attempt that may have sent its POST, each counted before it; 0 between attempts. */
  @Column('integer', { default: 0 })
  runs!: number

  /** A user requested the next attempt at once; cleared by the claim of that attempt. */
  @Column('boolean', { name: 'retry_requested', default: false })
  retryRequested!: boolean

  /** True if a user requested the attempt in progress. Stays true when the attempt is repeated after a lost worker. */
  @Column('boolean', { name: 'attempt_requested', default: false })
  attemptRequested!: boolean

  @Column('timestamptz', { name: 'next_attempt_at', nullable: true })
  nextAttemptAt!: Date | null

  /** The run that may be sending the POST of a delivery in progress: each run has an id of its own. */
  @Column('uuid', { nullable: true })
  owner!: string | null

  /** Until then only `owner` posts. After it, its process is lost: any other run may claim the delivery. */
  @Column('timestamptz', { name: 'lease_until', nullable: true })
  leaseUntil!: Date | null

  /**
   * When the sweeper reads this row: for another process to take it up, or to check its workflow. On a final row it is
   * what its workflow is still owed: a signal, or a start where it has none. Null once nothing is owed.
   */
  @Column('timestamptz', { name: 'sweep_at', nullable: true })
  sweepAt!: Date | null

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date

  /** When its workflow was seen to have started: by the dispatcher, or by its first attempt; null while it has none. */
  @Column('timestamptz', { name: 'workflow_started_at', nullable: true })
  workflowStartedAt!: Date | null

  /** Since when its workflow is paused in Temporal, as the sweeper saw it; cleared with every step of the delivery. */
  @Column('timestamptz', { name: 'paused_since', nullable: true })
  pausedSince!: Date | null

  /** When the state became final. */
  @Column('timestamptz', { name: 'completed_at', nullable: true })
  completedAt!: Date | null
}

/** The record of one POST. (delivery, number) is unique: a repeated run finds it and posts nothing. */
@Entity('attempt')
@Index('attempt_succeeded_idx', ['webhookId', 'startedAt'], { where: "outcome = 'succeeded'" })
@Index('attempt_failed_idx', ['webhookId', 'startedAt'], { where: "outcome = 'failed'" })
@Check('attempt_outcome_check', `"outcome" IN ('succeeded', 'failed')`)
export class Attempt {
  @PrimaryColumn('uuid', { name: 'delivery_id' })
  @ForeignKey(() => Delivery, { onDelete: 'CASCADE' })
  deliveryId!: string

  @PrimaryColumn('integer')
  number!: number

  /**
   * The delivery's webhook, to find its latest attempt, its successes and its failures; null for a test event, which
   * counts nowhere.
   */
  @Column('uuid', { name: 'webhook_id', nullable: true })
  webhookId!: string | null

  @Column('text')
  trigger!: AttemptTrigger

  /** The webhook's URL at the time. */
  @Column('text')
  url!: string

  @Column('timestamptz', { name: 'started_at' })
  startedAt!: Date

  @Column('integer', { name: 'duration_ms' })
  durationMs!: number

  @Column('text')
  outcome!: 'succeeded' | 'failed'

  @Column('text', { name: 'failure_code', nullable: true })
  failureCode!: FailureCode | null

  @Column('integer', { name: 'status_code', nullable: true })
  statusCode!: number | null

  /** Description for the receiver's owner; contains no internal address. */
  @Column('text', { nullable: true })
  error!: string | null

  @Column('jsonb', { name: 'response_headers', nullable: true })
  responseHeaders!: Record<string, string> | null

  /** Text-safe and capped. */
  @Column('text', { name: 'response_body', nullable: true })
  responseBody!: string | null

  @Column('boolean', { name: 'response_truncated', default: false })
  responseTruncated!: boolean
}

import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm'
import type { DeliveryState, StopReason } from '../../domain/delivery-state.ts'
import { Event } from './event.ts'
import { Webhook } from './webhook.ts'

/**
 * One event on its way to one webhook. `id` is sent as `X-Webhook-Event-ID` on every attempt.
 * This row is the truth about a delivery; its workflow only carries it out.
 */
@Entity('delivery')
@Check(
  'delivery_state_check',
  `"state" IN ('pending', 'in_progress', 'waiting', 'completed', 'failed', 'stopped')`,
)
@Check(
  'delivery_stop_reason_check',
  `"stop_reason" IN ('webhook_disabled', 'webhook_deleted', 'unsubscribed', 'discarded', 'test_failed')`,
)
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
  where: "state IN ('pending', 'in_progress', 'waiting') AND started_at IS NULL AND attempts = 0",
})
@Index('delivery_started_idx', ['sweepAt'], {
  where: "state IN ('pending', 'in_progress', 'waiting') AND (started_at IS NOT NULL OR attempts > 0)",
})
@Index('delivery_signal_idx', ['sweepAt'], {
  where: "sweep_at IS NOT NULL AND (state = 'stopped' OR state = 'completed' AND started_at IS NOT NULL)",
})
@Index('delivery_backfill_idx', ['sweepAt'], {
  where: "sweep_at IS NOT NULL AND state = 'completed' AND started_at IS NULL",
})
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

  /** Attempts that ended and are recorded. */
  @Column('integer', { default: 0 })
  attempts!: number

  /** How often the next attempt was begun without being recorded, this time included: its workers were lost. */
  @Column('integer', { default: 0 })
  claims!: number

  /** A user requested the next attempt at once; cleared by the claim of that attempt. */
  @Column('boolean', { name: 'retry_requested', default: false })
  retryRequested!: boolean

  /** True if a user requested the attempt in progress. Stays true when the attempt is repeated after a lost worker. */
  @Column('boolean', { name: 'attempt_requested', default: false })
  attemptRequested!: boolean

  @Column('timestamptz', { name: 'next_attempt_at', nullable: true })
  nextAttemptAt!: Date | null

  /** Owner of the lease: the process that is to start the workflow, or the run of the attempt in progress. */
  @Column('uuid', { nullable: true })
  owner!: string | null

  /** Until then only `owner` starts a `pending` delivery, or posts for one that is `in_progress`. */
  @Column('timestamptz', { name: 'lease_until', nullable: true })
  leaseUntil!: Date | null

  /**
   * When the sweep makes sure that somebody still keeps this row; null once the state is final, but for a `stopped`
   * delivery whose workflow has still to be signalled, and a `completed` one that is still to have a workflow.
   */
  @Column('timestamptz', { name: 'sweep_at', nullable: true })
  sweepAt!: Date | null

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date

  /** When its workflow was seen to have started: by the dispatcher, or by its first attempt; null while it has none. */
  @Column('timestamptz', { name: 'started_at', nullable: true })
  startedAt!: Date | null

  /** Since when its workflow is paused in Temporal, as the sweeper saw it; cleared with every step of the delivery. */
  @Column('timestamptz', { name: 'paused_since', nullable: true })
  pausedSince!: Date | null

  /** When the state became final. */
  @Column('timestamptz', { name: 'completed_at', nullable: true })
  completedAt!: Date | null
}

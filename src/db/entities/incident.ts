import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm'
import type {
  NotificationChannel,
  NotificationKind,
  NotificationState,
} from '../../domain/notification-rules.ts'
import { Webhook } from './webhook.ts'

/**
 * A webhook's failing deliveries, from the first failure on (spec 3.3). A successful delivery or a user's discard that
 * leaves nothing unresolved closes it, and so does the deletion of the webhook; nothing else does. This row is the
 * truth; the incident's workflow keeps the time and sends what is due.
 */
@Entity('incident')
@Index('incident_open_idx', ['webhookId'], { unique: true, where: 'closed_at IS NULL' })
@Index('incident_webhook_idx', ['webhookId', 'openedAt'])
@Index('incident_sweep_idx', ['sweepAt'], { where: 'sweep_at IS NOT NULL' })
@Index('incident_purge_idx', ['closedAt'], { where: 'closed_at IS NOT NULL' })
export class Incident {
  @PrimaryColumn('uuid')
  id!: string

  @Column('text', { name: 'organisation_id' })
  organisationId!: string

  @Column('uuid', { name: 'webhook_id' })
  @ForeignKey(() => Webhook)
  webhookId!: string

  @Column('timestamptz', { name: 'opened_at', default: () => 'now()' })
  openedAt!: Date

  @Column('timestamptz', { name: 'closed_at', nullable: true })
  closedAt!: Date | null

  /**
   * When its webhook was last switched on again, or last succeeded before retention deleted that, or began the last attempt
   * that failed before an evaluation found nothing unresolved; failures until then no longer count as continuous.
   */
  @Column('timestamptz', { name: 'resumed_at', nullable: true })
  resumedAt!: Date | null

  /** When its first delivery was marked permanently failed. */
  @Column('timestamptz', { name: 'exhausted_at', nullable: true })
  exhaustedAt!: Date | null

  /** When notification 1 was addressed to its recipients; never done again. */
  @Column('timestamptz', { name: 'first_notified_at', nullable: true })
  firstNotifiedAt!: Date | null

  /** The same of notification 2. */
  @Column('timestamptz', { name: 'second_notified_at', nullable: true })
  secondNotifiedAt!: Date | null

  /** The webhook's latest attempt was seen to have succeeded: the next failure has to wake the workflow. */
  @Column('boolean', { default: false })
  resting!: boolean

  /** When the sweeper signals its workflow to evaluate this row; null when it needs no signal. */
  @Column('timestamptz', { name: 'sweep_at', nullable: true })
  sweepAt!: Date | null
}

/**
 * One message about an incident to one recipient. The unique index, and the claim that changes `pending` to `sending`
 * before anything is sent, make sure that no recipient gets one kind twice.
 */
@Entity('notification')
@Check('notification_kind_check', `"kind" IN (1, 2)`)
@Check('notification_channel_check', `"channel" IN ('email', 'push')`)
@Check('notification_state_check', `"state" IN ('pending', 'sending', 'sent', 'failed', 'unknown')`)
@Index('notification_recipient_idx', ['incidentId', 'kind', 'channel', 'recipient'], { unique: true })
export class Notification {
  @PrimaryColumn('uuid')
  id!: string

  @Column('uuid', { name: 'incident_id' })
  @ForeignKey(() => Incident, { onDelete: 'CASCADE' })
  incidentId!: string

  /** 1: failing for five minutes · 2: first permanently failed (spec 6.4). */
  @Column('smallint')
  kind!: NotificationKind

  @Column('text')
  channel!: NotificationChannel

  /** An e-mail address, or the id of a push subscription. */
  @Column('text')
  recipient!: string

  @Column('text', { default: 'pending' })
  state!: NotificationState

  /** Which try has the row, so that one that was given up records nothing for the next. */
  @Column('uuid', { nullable: true })
  claim!: string | null

  @Column('timestamptz', { name: 'claimed_at', nullable: true })
  claimedAt!: Date | null

  @Column('timestamptz', { name: 'sent_at', nullable: true })
  sentAt!: Date | null

  /** Why it was not sent, in a few words for an operator. */
  @Column('text', { nullable: true })
  error!: string | null

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date
}

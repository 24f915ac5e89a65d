import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm'
import type {
  NotificationChannel,
  NotificationKind,
  NotificationState,
} from '../../domain/notification-rules.ts'
import { Incident } from './incident.ts'

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

import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm'
import { Organisation } from './organisation.ts'

/** A URL, the event keys it is subscribed to and a switch (spec 2.1). Deleting is soft and wipes the secret. */
@Entity('webhook')
@Check(
  'webhook_hold_check',
  `num_nonnulls("held_at", "hold_reason", "enabled_before_hold") IN (0, 3) AND ("held_at" IS NULL OR NOT "enabled")`,
)
@Index('webhook_organisation_idx', ['organisationId', 'createdAt', 'id'], { where: 'deleted_at IS NULL' })
@Index('webhook_disabled_idx', ['id'], { where: 'deleted_at IS NULL AND NOT enabled' })
export class Webhook {
  @PrimaryColumn('uuid')
  id!: string

  @Column('text', { name: 'organisation_id' })
  @ForeignKey(() => Organisation)
  organisationId!: string

  @Column('text')
  url!: string

  /** What its users call it; empty where they have not. */
  @Column('text', { default: '' })
  description!: string

  @Column('text', { name: 'subscribed_event_keys', array: true })
  subscribedEventKeys!: string[]

  @Column('boolean')
  enabled!: boolean

  /** Since when an operator holds it: it is disabled, and its organisation cannot enable it. */
  @Column('timestamptz', { name: 'held_at', nullable: true })
  heldAt!: Date | null

  /** What the operator tells the organisation of the hold. */
  @Column('text', { name: 'hold_reason', nullable: true })
  holdReason!: string | null

  /** What `enabled` becomes again at the end of the hold. */
  @Column('boolean', { name: 'enabled_before_hold', nullable: true })
  enabledBeforeHold!: boolean | null

  /** The signing secret as `keyId|iv|ciphertext|tag`, bound to this row; null once deleted. Read only by name. */
  @Column('text', { nullable: true, select: false })
  secret!: string | null

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date

  @Column('timestamptz', { name: 'updated_at', default: () => 'now()' })
  updatedAt!: Date

  @Column('timestamptz', { name: 'deleted_at', nullable: true })
  deletedAt!: Date | null
}

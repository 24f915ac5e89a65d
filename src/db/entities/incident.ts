import { Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm'
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

  /** When its webhook was last switched on again; failures before that no longer count as continuous. */
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

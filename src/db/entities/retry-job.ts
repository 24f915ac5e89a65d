import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm'
import type { DeliveryFilter, RetryMode } from '../../domain/delivery-filter.ts'
import { Organisation } from './organisation.ts'
import { Webhook } from './webhook.ts'

/** One call of retry-deliveries (spec 4.2), or one replay. `retry_job_webhook` has its progress. */
@Entity('retry_job')
@Index('retry_job_list_idx', ['organisationId', 'id'])
@Index('retry_job_sweep_idx', ['sweepAt'], { where: 'sweep_at IS NOT NULL' })
@Check('retry_job_mode_check', `"mode" IN ('failed', 'force', 'stopped', 'undelivered', 'replay')`)
@Check('retry_job_state_check', `"state" IN ('running', 'done', 'cancelled')`)
@Check('retry_job_replay_check', `("mode" = 'replay') = ("replay" IS NOT NULL)`)
export class RetryJob {
  @PrimaryColumn('uuid')
  id!: string

  @Column('text', { name: 'organisation_id' })
  @ForeignKey(() => Organisation)
  organisationId!: string

  /** The one webhook it is limited to; null for all enabled ones. */
  @Column('uuid', { name: 'webhook_id', nullable: true })
  @ForeignKey(() => Webhook)
  webhookId!: string | null

  @Column('text')
  mode!: RetryMode | 'replay'

  /** The events of a replay, and how they were counted; null for a job that retries. */
  @Column('jsonb', { nullable: true })
  replay!: object | null

  /** Limits it to the deliveries that fit; null does not. */
  @Column('jsonb', { nullable: true })
  filter!: DeliveryFilter | null

  /** Limits it to these deliveries; null does not. */
  @Column('uuid', { name: 'delivery_ids', array: true, nullable: true })
  deliveryIds!: string[] | null

  /** Member that requested it. */
  @Column('text', { name: 'requested_by' })
  requestedBy!: string

  @Column('text', { default: 'running' })
  state!: 'running' | 'done' | 'cancelled'

  /** When the sweep makes sure that its workflow runs; null once it is done. */
  @Column('timestamptz', { name: 'sweep_at', nullable: true })
  sweepAt!: Date | null

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date
}

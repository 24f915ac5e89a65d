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

/** How far a retry job has come with one webhook. Each page of deliveries moves it on in one statement. */
@Entity('retry_job_webhook')
export class RetryJobWebhook {
  @PrimaryColumn('uuid', { name: 'job_id' })
  @ForeignKey(() => RetryJob, { onDelete: 'CASCADE' })
  jobId!: string

  @PrimaryColumn('uuid', { name: 'webhook_id' })
  @ForeignKey(() => Webhook)
  webhookId!: string

  /** Deliveries it was to retry when the job was made. */
  @Column('integer')
  total!: number

  /** Of these, how many have been attempted or no longer needed it. */
  @Column('integer', { default: 0 })
  done!: number

  /** Of these, how many the attempt of this job completed. */
  @Column('integer', { default: 0 })
  succeeded!: number

  /** Of these, for how many the attempt of this job was made and failed. */
  @Column('integer', { default: 0 })
  failed!: number

  /** The last delivery that was passed, in the order of ids; null at the beginning. */
  @Column('uuid', { nullable: true })
  cursor!: string | null

  /** Sequence number of the last event that a replay passed; 0 at the beginning. */
  @Column('bigint', { name: 'event_cursor', default: 0 })
  eventCursor!: string

  /** Deliveries whose requested attempt has not ended: a few dozen at most. */
  @Column('uuid', { name: 'under_way', array: true, default: () => "'{}'" })
  underWay!: string[]

  /** For each of `under_way` the number of the requested attempt. */
  @Column('integer', { name: 'under_way_numbers', array: true, default: () => "'{}'" })
  underWayNumbers!: number[]

  /** Nothing is left after the cursor, and nothing under way. */
  @Column('boolean', { default: false })
  finished!: boolean
}

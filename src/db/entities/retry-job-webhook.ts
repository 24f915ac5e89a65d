import { Column, Entity, ForeignKey, PrimaryColumn } from 'typeorm'
import { RetryJob } from './retry-job.ts'
import { Webhook } from './webhook.ts'

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

import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm'
import type { AttemptTrigger, FailureCode } from '../../domain/attempt-outcome.ts'
import { Delivery } from './delivery.ts'

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

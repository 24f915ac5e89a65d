import { Check, Column, Entity, ForeignKey, Generated, Index, PrimaryColumn } from 'typeorm'
import { Organisation } from './organisation.ts'

/**
 * What happened: one immutable envelope. `body` is the only copy of the payload, the exact bytes that are signed; null
 * once it is erased.
 */
@Entity('event')
@Check(
  'event_erased_check',
  `("body" IS NULL) = ("erased_at" IS NOT NULL) AND ("erased_at" IS NULL) = ("erased_by" IS NULL)`,
)
@Index('event_created_idx', ['createdAt'])
@Index('event_trace_idx', ['organisationId', 'traceId', 'sequence'])
@Index('event_stream_idx', ['organisationId', 'sequence'], { unique: true })
export class Event {
  @PrimaryColumn('uuid')
  id!: string

  @Column('text', { name: 'organisation_id' })
  @ForeignKey(() => Organisation)
  organisationId!: string

  /** Taken at the insert, so in another order than commits come: `src/stream/watermark.ts`. */
  @Column('bigint')
  @Generated('increment')
  sequence!: string

  @Column('text')
  key!: string

  @Column('bytea', { nullable: true })
  body!: Buffer | null

  @Column('timestamptz', { name: 'emitted_at' })
  emittedAt!: Date

  @Column('text', { name: 'trace_id' })
  traceId!: string

  /** Made to check one endpoint: it is not in the event stream. */
  @Column('boolean', { name: 'is_test', default: false })
  isTest!: boolean

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date

  @Column('timestamptz', { name: 'erased_at', nullable: true })
  erasedAt!: Date | null

  /** The member, or `operator:` and the name of the key. */
  @Column('text', { name: 'erased_by', nullable: true })
  erasedBy!: string | null
}

/** The highest `event.sequence` of an organisation that retention has deleted: behind it events are missing. */
@Entity('event_horizon')
export class EventHorizon {
  @PrimaryColumn('text', { name: 'organisation_id' })
  @ForeignKey(() => Organisation)
  organisationId!: string

  @Column('bigint')
  sequence!: string
}

/** The answer to a request with an `Idempotency-Key`, stored for a day. Contains no secret. */
@Entity('idempotency_key')
@Index('idempotency_key_created_idx', ['createdAt'])
export class IdempotencyKey {
  @PrimaryColumn('text', { name: 'organisation_id' })
  @ForeignKey(() => Organisation)
  organisationId!: string

  /** Keys of two members never meet: one must not read the other's answer. */
  @PrimaryColumn('text', { name: 'member_id' })
  memberId!: string

  @PrimaryColumn('text')
  operation!: string

  @PrimaryColumn('text')
  key!: string

  /** SHA-256 of the request body. */
  @Column('bytea')
  digest!: Buffer

  @Column('jsonb', { nullable: true })
  response!: unknown

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date
}

import { Column, Entity, ForeignKey, Generated, Index, PrimaryColumn } from 'typeorm'
import { Organisation } from './organisation.ts'

/** What happened: one immutable envelope. `body` is the only copy of the payload, the exact bytes that are signed. */
@Entity('event')
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

  @Column('bytea')
  body!: Buffer

  @Column('timestamptz', { name: 'emitted_at' })
  emittedAt!: Date

  @Column('text', { name: 'trace_id' })
  traceId!: string

  /** Made to check one endpoint: it is not in the event stream. */
  @Column('boolean', { name: 'is_test', default: false })
  isTest!: boolean

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date
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

import { Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm'
import { Organisation } from './organisation.ts'

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

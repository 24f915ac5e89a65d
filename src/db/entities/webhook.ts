import { Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm'
import { Organisation } from './organisation.ts'

/** A URL, the event keys it is subscribed to and a switch (spec 2.1). Deleting is soft and wipes the secret. */
@Entity('webhook')
@Index('webhook_organisation_idx', ['organisationId', 'createdAt', 'id'], { where: 'deleted_at IS NULL' })
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

import { Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm'
import { Member } from './organisation.ts'

/**
 * A key that acts as its member. Only its SHA-256 and a short public prefix are stored. A revoked key stays, to be
 * listed; its name is free for the next one.
 */
@Entity('api_key')
@ForeignKey(() => Member, ['organisationId', 'memberId'], ['organisationId', 'id'], { onDelete: 'CASCADE' })
@Index('api_key_hash_idx', ['hash'], { unique: true })
@Index('api_key_member_idx', ['organisationId', 'memberId'])
@Index('api_key_name_idx', ['organisationId', 'memberId', 'name'], {
  unique: true,
  where: 'revoked_at IS NULL',
})
export class ApiKey {
  @PrimaryColumn('uuid')
  id!: string

  @Column('text', { name: 'organisation_id' })
  organisationId!: string

  @Column('text', { name: 'member_id' })
  memberId!: string

  @Column('text')
  name!: string

  /** The first characters of the key, by which members recognise it. */
  @Column('text')
  prefix!: string

  @Column('bytea', { select: false })
  hash!: Buffer

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date

  /** Written at most once a minute. */
  @Column('timestamptz', { name: 'last_used_at', nullable: true })
  lastUsedAt!: Date | null

  @Column('timestamptz', { name: 'revoked_at', nullable: true })
  revokedAt!: Date | null

  @Column('timestamptz', { name: 'expires_at', nullable: true })
  expiresAt!: Date | null
}

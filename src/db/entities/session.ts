import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm'
import { ApiKey, Member } from './organisation.ts'

/**
 * A signed-in browser. Signed in with an API key, it acts as that key while the key is valid and has the same value.
 * Signed in by a portal link, it acts as the member, and has no key. Signed in with an operator key, it acts as that key.
 */
@Entity('session')
@Index('session_api_key_idx', ['apiKeyId', 'createdAt'])
@Index('session_member_idx', ['organisationId', 'memberId', 'createdAt'])
@Index('session_expires_idx', ['expiresAt'])
@ForeignKey(() => Member, ['organisationId', 'memberId'], ['organisationId', 'id'], { onDelete: 'CASCADE' })
@Check(
  'session_owner_check',
  `num_nonnulls("api_key_id", "member_id", "operator") = 1 AND ("organisation_id" IS NULL) = ("member_id" IS NULL)
      AND ("key_hash" IS NULL) = ("member_id" IS NOT NULL)`,
)
export class Session {
  /** SHA-256 of the token in the browser's cookie. */
  @PrimaryColumn('bytea')
  hash!: Buffer

  @Column('uuid', { name: 'api_key_id', nullable: true })
  @ForeignKey(() => ApiKey, { onDelete: 'CASCADE' })
  apiKeyId!: string | null

  /** SHA-256 of the value that the API key or the operator key had at the sign-in. */
  @Column('bytea', { name: 'key_hash', nullable: true })
  keyHash!: Buffer | null

  /** With the member: of a portal link. */
  @Column('text', { name: 'organisation_id', nullable: true })
  organisationId!: string | null

  @Column('text', { name: 'member_id', nullable: true })
  memberId!: string | null

  /** The name of an operator key. */
  @Column('text', { nullable: true })
  operator!: string | null

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date

  @Column('timestamptz', { name: 'expires_at' })
  expiresAt!: Date
}

/** Opens the developer area once, as a member. Only the SHA-256 of its token is stored. */
@Entity('portal_link')
@Index('portal_link_member_idx', ['organisationId', 'memberId'])
@ForeignKey(() => Member, ['organisationId', 'memberId'], ['organisationId', 'id'], { onDelete: 'CASCADE' })
export class PortalLink {
  @PrimaryColumn('bytea')
  hash!: Buffer

  @Column('text', { name: 'organisation_id' })
  organisationId!: string

  @Column('text', { name: 'member_id' })
  memberId!: string

  /** Where it leads, as its creator wrote it: a path within the developer area. */
  @Column('text')
  path!: string

  @Column('timestamptz', { name: 'expires_at' })
  expiresAt!: Date
}

/** Opens one stream in place of an API key, for a client that cannot send a header. Only its SHA-256 is stored. */
@Entity('stream_ticket')
export class StreamTicket {
  @PrimaryColumn('bytea')
  hash!: Buffer

  @Column('uuid', { name: 'api_key_id' })
  @ForeignKey(() => ApiKey, { onDelete: 'CASCADE' })
  apiKeyId!: string

  /** SHA-256 of the value that the key had when the ticket was issued. */
  @Column('bytea', { name: 'key_hash' })
  keyHash!: Buffer

  @Column('timestamptz', { name: 'expires_at' })
  expiresAt!: Date
}

import { Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm'
import { Member } from './organisation.ts'

/** Where a browser of a member takes push messages: what `PushSubscription.toJSON()` gives (W3C Push API). */
@Entity('push_subscription')
@ForeignKey(() => Member, ['organisationId', 'memberId'], ['organisationId', 'id'], { onDelete: 'CASCADE' })
@Index('push_subscription_endpoint_idx', ['organisationId', 'memberId', 'endpoint'], { unique: true })
export class PushSubscription {
  @PrimaryColumn('uuid')
  id!: string

  @Column('text', { name: 'organisation_id' })
  organisationId!: string

  @Column('text', { name: 'member_id' })
  memberId!: string

  /** A capability URL: its bearer may push. Shown to the member only. */
  @Column('text')
  endpoint!: string

  /** The browser's public key, base64url: 65 bytes. */
  @Column('text', { select: false })
  p256dh!: string

  /** The secret shared with the browser, base64url: 16 bytes. */
  @Column('text', { select: false })
  auth!: string

  /** Of the session that made it, which may have expired since; ends with its sign-out. */
  @Column('bytea', { name: 'session_hash', nullable: true })
  sessionHash!: Buffer | null

  /** The API key that made it, or that its session stood for: it counts while the key is valid with this value. */
  @Column('uuid', { name: 'api_key_id', nullable: true })
  apiKeyId!: string | null

  @Column('bytea', { name: 'key_hash', nullable: true })
  keyHash!: Buffer | null

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date
}

import { Column, Entity, PrimaryColumn, ForeignKey, Index, Check } from 'typeorm'
import type { AuditAction } from '../../domain/audit-action.ts'

/** A tenant of the platform; comes in by `posthorn seed` and over the operator API. */
@Entity('organisation')
export class Organisation {
  @PrimaryColumn('text')
  id!: string

  @Column('text')
  name!: string

  @Column('text')
  email!: string

  /** Where failure notifications go first, when set (spec 6.4). */
  @Column('text', { name: 'support_email', nullable: true })
  supportEmail!: string | null

  /** IANA time zone for dates in notifications (spec 8.2). */
  @Column('text', { name: 'time_zone' })
  timeZone!: string
}

/** A member of one organisation, with permissions. */
@Entity('member')
export class Member {
  @PrimaryColumn('text', { name: 'organisation_id' })
  @ForeignKey(() => Organisation)
  organisationId!: string

  @PrimaryColumn('text')
  id!: string

  @Column('text')
  name!: string

  @Column('text')
  email!: string

  /** Holds every permission, and the wildcard subscription. */
  @Column('boolean', { name: 'full_access' })
  fullAccess!: boolean

  @Column('boolean', { name: 'push_enabled' })
  pushEnabled!: boolean

  @Column('text', { array: true })
  permissions!: string[]
}

/** How many rows of an organisation were erased so far. */
export type ErasedCounts = {
  events: number
  deliveries: number
  attempts: number
  incidents: number
  auditEntries: number
}

/** An organisation that is being erased; goes with the organisation itself, as the last row of it. */
@Entity('organisation_erasure')
@Index('organisation_erasure_sweep_idx', ['sweepAt'])
export class OrganisationErasure {
  @PrimaryColumn('text', { name: 'organisation_id' })
  @ForeignKey(() => Organisation, { onDelete: 'CASCADE' })
  organisationId!: string

  @Column('timestamptz', { name: 'requested_at', default: () => 'now()' })
  requestedAt!: Date

  /** When the sweeper makes sure that its workflow runs. */
  @Column('timestamptz', { name: 'sweep_at' })
  sweepAt!: Date

  @Column('jsonb')
  erased!: ErasedCounts
}

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

/**
 * Who did what to an organisation's webhooks, when and from where. Written in the transaction of the act; a trigger
 * refuses every change of a row, and its deletion before it is a month old, unless its organisation is erased. Holds no
 * secret.
 */
@Entity('audit_entry')
@Index('audit_entry_organisation_idx', ['organisationId', 'id'])
@Index('audit_entry_purge_idx', ['at'])
export class AuditEntry {
  @PrimaryColumn('uuid')
  id!: string

  @Column('text', { name: 'organisation_id' })
  organisationId!: string

  @Column('timestamptz', { default: () => 'now()' })
  at!: Date

  /** Null over the operator API and at the command line. */
  @Column('text', { name: 'member_id', nullable: true })
  memberId!: string | null

  @Column('uuid', { name: 'api_key_id', nullable: true })
  apiKeyId!: string | null

  @Column('text')
  action!: AuditAction

  /** What was acted on; not a reference, since an entry outlives it. */
  @Column('uuid', { name: 'webhook_id', nullable: true })
  webhookId!: string | null

  @Column('uuid', { name: 'delivery_id', nullable: true })
  deliveryId!: string | null

  /** What else is worth knowing, by action; URLs without their query. */
  @Column('jsonb')
  details!: Record<string, unknown>

  /** Of the sender of the request; null at the command line. */
  @Column('text', { nullable: true })
  address!: string | null

  /** The request in the log. */
  @Column('text', { name: 'request_id', nullable: true })
  requestId!: string | null
}

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

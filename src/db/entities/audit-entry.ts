import { Column, Entity, Index, PrimaryColumn } from 'typeorm'
import type { AuditAction } from '../../domain/audit-action.ts'

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

import { Column, Entity, ForeignKey, PrimaryColumn } from 'typeorm'
import { ApiKey } from './api-key.ts'

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

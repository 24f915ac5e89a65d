import { Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm'
import { ApiKey } from './api-key.ts'

/** A browser that was signed in with an API key. It acts as that key while the key is valid and has the same value. */
@Entity('session')
@Index('session_api_key_idx', ['apiKeyId', 'createdAt'])
@Index('session_expires_idx', ['expiresAt'])
export class Session {
  /** SHA-256 of the token in the browser's cookie. */
  @PrimaryColumn('bytea')
  hash!: Buffer

  @Column('uuid', { name: 'api_key_id' })
  @ForeignKey(() => ApiKey, { onDelete: 'CASCADE' })
  apiKeyId!: string

  /** SHA-256 of the value that the key had at the sign-in. */
  @Column('bytea', { name: 'key_hash' })
  keyHash!: Buffer

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date

  @Column('timestamptz', { name: 'expires_at' })
  expiresAt!: Date
}

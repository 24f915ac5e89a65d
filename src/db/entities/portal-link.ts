import { Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm'
import { Member } from './member.ts'

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

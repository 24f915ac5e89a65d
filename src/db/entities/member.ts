import { Column, Entity, ForeignKey, PrimaryColumn } from 'typeorm'
import { Organisation } from './organisation.ts'

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

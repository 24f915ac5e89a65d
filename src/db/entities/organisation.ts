import { Column, Entity, PrimaryColumn, ForeignKey, Index } from 'typeorm'

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

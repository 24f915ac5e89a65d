import { Column, Entity, PrimaryColumn } from 'typeorm'

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

import { Column, Entity, ForeignKey, PrimaryColumn } from 'typeorm'
import { Organisation } from './organisation.ts'

/** The highest `event.sequence` of an organisation that retention has deleted: behind it events are missing. */
@Entity('event_horizon')
export class EventHorizon {
  @PrimaryColumn('text', { name: 'organisation_id' })
  @ForeignKey(() => Organisation)
  organisationId!: string

  @Column('bigint')
  sequence!: string
}

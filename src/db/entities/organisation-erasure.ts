import { Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm'
import { Organisation } from './organisation.ts'

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

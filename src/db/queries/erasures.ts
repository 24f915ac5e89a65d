// Repositories, but for what the sweeper takes, and what one statement stops for every webhook.
import type { EntityManager } from 'typeorm'
import { sql, type Db } from '../connection/db.ts'
import { OrganisationErasure, type ErasedCounts } from '../entities/organisation.ts'

export const NOTHING_ERASED: ErasedCounts = {
  events: 0,
  deliveries: 0,
  attempts: 0,
  incidents: 0,
  auditEntries: 0,
}

/** SQL for whether the organisation of a member is being erased. */
export const IS_ERASING = `EXISTS (SELECT 1 FROM organisation_erasure
                           WHERE organisation_erasure.organisation_id = member.organisation_id)`

/** True where there is such an organisation, and it is not being erased. */
export async function isActiveOrganisation(db: Db, organisationId: string): Promise<boolean> {
  const found = await sql(
    `SELECT 1 FROM organisation WHERE id = :organisationId
        AND NOT EXISTS (SELECT 1 FROM organisation_erasure WHERE organisation_id = :organisationId)`,
    { organisationId },
  ).first(db)
  return found !== null
}

export function isErasing(db: Db, organisationId: string): Promise<boolean> {
  return db.getRepository(OrganisationErasure).existsBy({ organisationId })
}

/** The caller holds the lock of the organisation. The sweeper starts the workflow where the caller did not. */
export async function insertErasure(db: Db, organisationId: string): Promise<void> {
  await db.getRepository(OrganisationErasure).insert({
    organisationId,
    sweepAt: () => `now() + interval '5 seconds'`,
    erased: NOTHING_ERASED,
  })
}

/** Deletes every webhook softly, so that no further attempt is made, and wipes the secrets; returns their ids. */
export function deleteAllWebhooks(db: Db, organisationId: string): Promise<string[]> {
  return sql(
    `UPDATE webhook SET deleted_at = now(), updated_at = now(), enabled = false, secret = NULL
      WHERE id IN (SELECT id FROM webhook WHERE organisation_id = :organisationId AND deleted_at IS NULL
                    ORDER BY id FOR NO KEY UPDATE)
     RETURNING id`,
    { organisationId },
  ).ids(db)
}

/** Locks the erasure until the transaction ends, so that no two of its steps overlap; null when it is done. */
export function lockErasure(
  manager: EntityManager,
  organisationId: string,
): Promise<OrganisationErasure | null> {
  const lock = { mode: 'pessimistic_write' } as const
  return manager.getRepository(OrganisationErasure).findOne({ where: { organisationId }, lock })
}

/** Adds to the counts of a locked erasure. */
export async function addErased(
  manager: EntityManager,
  { organisationId, erased }: OrganisationErasure,
  more: Partial<ErasedCounts>,
): Promise<void> {
  const sum = { ...erased }
  for (const name of Object.keys(sum) as (keyof ErasedCounts)[]) sum[name] += more[name] ?? 0
  await manager.getRepository(OrganisationErasure).update({ organisationId }, { erased: sum })
}

/** Takes erasures whose workflow may not run, for a while. */
export async function takeErasuresForSweep(db: Db, limit: number): Promise<{ organisationId: string }[]> {
  return sql(
    `WITH due AS (
       SELECT organisation_id FROM organisation_erasure WHERE sweep_at < now()
        ORDER BY sweep_at LIMIT :limit FOR UPDATE SKIP LOCKED
     )
     UPDATE organisation_erasure SET sweep_at = now() + interval '15 seconds'
       FROM due WHERE organisation_erasure.organisation_id = due.organisation_id
     RETURNING organisation_erasure.organisation_id AS "organisationId"`,
    { limit },
  ).rows(db)
}

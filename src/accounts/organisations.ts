import type { Static, TObject } from 'typebox'
import type { DataSource, EntityManager } from 'typeorm'
import type { Db } from '../db/connection/db.ts'
import type { AuditActor } from '../db/queries/audit.ts'
import { isErasing } from '../db/queries/erasures.ts'
import {
  findOrganisation,
  insertOrganisation,
  lockOrganisation,
  upsertOrganisation,
  type OrganisationInput,
} from '../db/queries/organisations.ts'
import { conflict, notFound } from '../problem-error.ts'
import { auditAccount } from './account-audit.ts'
import { DEFAULT_TIME_ZONE, type organisationFields } from './account-fields.ts'

/** An organisation as the platform gives it; what is left out has its default. */
export type GivenOrganisation = { id: string } & Static<TObject<typeof organisationFields>>

/**
 * Creates the organisation or brings it up to date, and audits what changed. Returns whether it is new.
 * Throws 409 `organisation_erasing` until an erased one of that id is gone.
 */
export async function saveOrganisation(
  manager: EntityManager,
  actor: AuditActor,
  { id, name, email, supportEmail = null, timeZone = DEFAULT_TIME_ZONE }: GivenOrganisation,
): Promise<{ isNew: boolean; organisation: OrganisationInput }> {
  const organisation = { id, name, email, supportEmail, timeZone }
  const isNew = await insertOrganisation(manager, organisation)
  // So that it does not change between the read and the write, and no erasure begins before the commit.
  if (!isNew) await lockOrganisation(manager, id)
  const before = isNew ? null : await upsertOrganisation(manager, organisation)
  if (before !== null && (await isErasing(manager, id)))
    throw conflict(
      'organisation_erasing',
      `The organisation ${id} is being erased. Try again when it is gone.`,
    )
  await auditAccount(manager, actor, 'organisation', before, organisation)
  return { isNew: before === null, organisation }
}

/** {@link saveOrganisation} in a transaction of its own. */
export function putOrganisation(
  { dataSource }: { dataSource: DataSource },
  actor: AuditActor,
  given: GivenOrganisation,
): Promise<{ isNew: boolean; organisation: OrganisationInput }> {
  return dataSource.transaction((manager) => saveOrganisation(manager, actor, given))
}

/**
 * Locks the organisation until the transaction ends, against other changes of it, its members and their keys.
 * Throws 404 when there is none, or it is being erased.
 */
export async function requireOrganisation(db: Db, organisationId: string): Promise<void> {
  await lockOrganisation(db, organisationId)
  const found = await findOrganisation(db, organisationId)
  if (found === null || found.erasure !== null) throw notFound('organisation')
}

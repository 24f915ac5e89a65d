import type { Static, TObject } from 'typebox'
import type { DataSource, EntityManager } from 'typeorm'
import type { Db } from '../db/connection/db.ts'
import { recordAudit, type AuditActor } from '../db/queries/audit.ts'
import { isErasing } from '../db/queries/erasures.ts'
import {
  deleteMember,
  findOrganisation,
  insertOrganisation,
  lockOrganisation,
  upsertMember,
  upsertOrganisation,
  type MemberInput,
  type OrganisationInput,
} from '../db/queries/organisations.ts'
import { conflict, notFound } from '../problem-error.ts'
import { DEFAULT_TIME_ZONE, type memberFields, type organisationFields } from './account-fields.ts'
import { callerCachesExpired } from './caller-lookup.ts'

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

/** A member as the platform gives it; what is left out has its default. */
export type GivenMember = { id: string } & Static<TObject<typeof memberFields>>

/** Creates the member or brings it up to date, and audits what changed. Returns whether it is new. */
export async function saveMember(
  manager: EntityManager,
  actor: AuditActor,
  { id, name, email, fullAccess = false, pushEnabled = true, permissions = [] }: GivenMember,
): Promise<{ isNew: boolean; member: MemberInput }> {
  const member = { id, name, email, fullAccess, pushEnabled, permissions }
  const before = await upsertMember(manager, actor.organisationId, member)
  await auditAccount(manager, actor, 'member', before, member)
  return { isNew: before === null, member }
}

/** {@link saveMember} in a transaction of its own. Throws 404 when there is no such organisation. */
export function putMember(
  { dataSource }: { dataSource: DataSource },
  actor: AuditActor,
  given: GivenMember,
): Promise<{ isNew: boolean; member: MemberInput }> {
  return dataSource.transaction(async (manager) => {
    await requireOrganisation(manager, actor.organisationId)
    return saveMember(manager, actor, given)
  })
}

/**
 * Deletes the member with its API keys, sessions and push subscriptions, which count nowhere any more when this returns.
 * Throws 404 when there is none.
 */
export async function removeMember(
  { dataSource }: { dataSource: DataSource },
  actor: AuditActor,
  memberId: string,
): Promise<void> {
  const { organisationId } = actor
  await dataSource.transaction(async (manager) => {
    await requireOrganisation(manager, organisationId)
    if (!(await deleteMember(manager, organisationId, memberId))) throw notFound('member')
    await recordAudit(manager, actor, { action: 'member.deleted', details: { id: memberId } })
  })
  await callerCachesExpired()
}

/** Records that `actor` created or changed an organisation, or a member or its rights; nothing when it is as it was. */
async function auditAccount<Input extends OrganisationInput | MemberInput>(
  manager: EntityManager,
  actor: AuditActor,
  what: 'organisation' | 'member',
  before: Input | null,
  after: Input,
): Promise<void> {
  const change = changeOf(before, after)
  if (change === null) return
  const action = before === null ? (`${what}.created` as const) : (`${what}.updated` as const)
  await recordAudit(manager, actor, { action, details: { id: after.id, ...change } })
}

/** The fields that differ, as they were and as they are; all of them where there was nothing before. Null: none. */
function changeOf<T extends object>(
  before: T | null,
  after: T,
): { before: Partial<T> | null; after: Partial<T> } | null {
  if (before === null) return { before, after }
  const changed = (Object.keys(after) as (keyof T)[]).filter(
    (field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]),
  )
  if (changed.length === 0) return null
  const only = (of: T) => Object.fromEntries(changed.map((field) => [field, of[field]])) as Partial<T>
  return { before: only(before), after: only(after) }
}

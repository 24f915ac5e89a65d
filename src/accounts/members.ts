import type { Static, TObject } from 'typebox'
import type { DataSource, EntityManager } from 'typeorm'
import { recordAudit, type AuditActor } from '../db/queries/audit.ts'
import { deleteMember, upsertMember, type MemberInput } from '../db/queries/organisations.ts'
import { notFound } from '../problem-error.ts'
import { auditAccount } from './account-audit.ts'
import type { memberFields } from './account-fields.ts'
import { callerCachesExpired } from './caller-lookup.ts'
import { requireOrganisation } from './organisations.ts'

/** A member as the platform gives it; what is left out has its default. */
export type GivenMember = { id: string } & Static<TObject<typeof memberFields>>

/** Creates the member or brings it up to date, and audits what changed. Returns whether it is new. */
export async function saveMember(
  manager: EntityManager,
  actor: AuditActor,
  { id, name, email, fullAccess = false, pushEnabled = false, permissions = [] }: GivenMember,
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

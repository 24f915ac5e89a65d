import type { DataSource, EntityManager } from 'typeorm'
import { hashCredential, newToken } from '../credentials.ts'
import { recordAudit, type AuditActor } from '../db/queries/audit.ts'
import { deleteSession, insertMemberSession, insertSession, type Session } from '../db/queries/sessions.ts'
import { unauthenticated } from '../errors.ts'
import type { Actor, KeyCaller } from './actor.ts'

type Dependencies = { dataSource: DataSource }

type OpenedSession = { token: string; expiresAt: Date }

/**
 * Opens a session of the actor's API key. The token is returned this once: only its hash is stored.
 * Throws the 401 of an invalid key when the key's value was replaced meanwhile.
 */
export async function openSession(
  { dataSource }: Dependencies,
  actor: Actor & KeyCaller,
): Promise<OpenedSession> {
  const { organisationId, apiKeyId, keyHash } = actor
  const token = newToken()
  const hash = hashCredential(token)
  const expiresAt = await dataSource.transaction(async (manager) => {
    const end = await insertSession(manager, organisationId, { hash, apiKeyId, keyHash })
    if (end === null) throw unauthenticated()
    await recordAudit(manager, actor, { action: 'session.opened' })
    return end
  })
  return { token, expiresAt }
}

/**
 * Opens a session of a member without an API key, in the transaction that uses up a portal link. It has the rights that
 * the member has at each request.
 */
export async function openMemberSession(
  manager: EntityManager,
  member: { organisationId: string; memberId: string } & Pick<AuditActor, 'address' | 'requestId'>,
): Promise<OpenedSession> {
  const { organisationId, memberId } = member
  const token = newToken()
  const expiresAt = await insertMemberSession(manager, {
    hash: hashCredential(token),
    organisationId,
    memberId,
  })
  const details = { by: 'portal_link' }
  await recordAudit(manager, { ...member, apiKeyId: null }, { action: 'session.opened', details })
  return { token, expiresAt }
}

/** Ends a session of the actor's organisation. */
export async function endSession(
  { dataSource }: Dependencies,
  actor: Actor,
  { hash }: Pick<Session, 'hash'>,
): Promise<void> {
  await dataSource.transaction(async (manager) => {
    await deleteSession(manager, actor.organisationId, hash)
    await recordAudit(manager, actor, { action: 'session.ended' })
  })
}

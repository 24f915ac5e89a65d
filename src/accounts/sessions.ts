import type { DataSource, EntityManager } from 'typeorm'
import { hashCredential, newToken } from '../credentials.ts'
import { recordAudit, type AuditActor } from '../db/queries/audit.ts'
import { lockMember, movePushSubscriptions, type PushOwner } from '../db/queries/push-subscriptions.ts'
import {
  deleteSession,
  deleteSessionsOf,
  findCallerOfSession,
  insertMemberSession,
  insertSession,
  lockSession,
} from '../db/queries/sessions.ts'
import { notFound, unauthenticated } from '../problem-error.ts'
import type { Actor, Caller, KeyCaller } from '../domain/actor.ts'
import { requireOrganisation } from './organisations.ts'

type Dependencies = { dataSource: DataSource }

type OpenedSession = { token: string; expiresAt: Date }

/** The session that a browser has when it signs in again, or out. */
export type FormerSession = NonNullable<Awaited<ReturnType<typeof findCallerOfSession>>>

type RequestOrigin = Pick<AuditActor, 'address' | 'requestId'>

/** A member, with the origin of its request. */
type SignedIn = Pick<Caller, 'organisationId' | 'memberId'> & RequestOrigin

/**
 * Opens a session of the actor's API key, and ends the one with the hash `former`, which the browser had. The token is
 * returned this once: only its hash is stored. Throws the 401 of an invalid key when the key's value was replaced
 * meanwhile.
 */
export async function openSession(
  { dataSource }: Dependencies,
  actor: Actor & KeyCaller,
  former: Buffer | null,
): Promise<OpenedSession> {
  const { organisationId, apiKeyId, keyHash } = actor
  const token = newToken()
  const hash = hashCredential(token)
  const expiresAt = await dataSource.transaction(async (manager) => {
    const end = await insertSession(manager, organisationId, { hash, apiKeyId, keyHash })
    if (end === null) throw unauthenticated()
    await endFormer(manager, actor, await findFormerSession(manager, former), {
      sessionHash: hash,
      apiKeyId,
      keyHash,
    })
    await recordAudit(manager, actor, { action: 'session.opened' })
    return end
  })
  return { token, expiresAt }
}

/**
 * Opens a session of a member without an API key, in the transaction that uses up a portal link, and ends the `former`
 * one of the browser. It has the rights that the member has at each request.
 */
export async function openMemberSession(
  manager: EntityManager,
  member: SignedIn,
  former: FormerSession | null,
): Promise<OpenedSession> {
  const { organisationId, memberId } = member
  const token = newToken()
  const hash = hashCredential(token)
  const expiresAt = await insertMemberSession(manager, { hash, organisationId, memberId })
  await endFormer(manager, member, former, { sessionHash: hash, apiKeyId: null, keyHash: null })
  const details = { by: 'portal_link' }
  await recordAudit(manager, { ...member, apiKeyId: null }, { action: 'session.opened', details })
  return { token, expiresAt }
}

/** Returns the session that a browser has, by the hash of its token; null where it has none that counts. */
export function findFormerSession(
  manager: EntityManager,
  hash: Buffer | null,
): Promise<FormerSession | null> {
  return hash === null ? Promise.resolve(null) : findCallerOfSession(manager, hash)
}

/** Ends the session that another one replaces. Its push subscriptions stay with the browser where the member stays. */
async function endFormer(
  manager: EntityManager,
  next: SignedIn,
  former: FormerSession | null,
  owner: PushOwner,
): Promise<void> {
  if (former === null) return
  const { caller, session } = former
  // Before its subscriptions, as what makes one in it does.
  await lockSession(manager, session.hash)
  if (isSameMember(caller, next)) await movePushSubscriptions(manager, caller, session.hash, owner)
  await endFound(manager, former, next, { by: 'sign_in' })
}

/** Ends a session, with the push subscriptions that were made in it, in the name of its member. */
async function endFound(
  manager: EntityManager,
  { caller, session }: FormerSession,
  { address, requestId }: RequestOrigin,
  details: Record<string, unknown>,
): Promise<void> {
  await deleteSession(manager, caller.organisationId, session.hash)
  await recordAudit(manager, { ...caller, address, requestId }, { action: 'session.ended', details })
}

type MemberId = Pick<Caller, 'organisationId' | 'memberId'>

export function isSameMember(one: MemberId, other: MemberId): boolean {
  return one.organisationId === other.organisationId && one.memberId === other.memberId
}

/** Ends the session of a browser, by the hash of its token, where it has one that counts. */
export async function endSession(
  { dataSource }: Dependencies,
  origin: RequestOrigin,
  hash: Buffer | null,
): Promise<void> {
  await dataSource.transaction(async (manager) => {
    const found = await findFormerSession(manager, hash)
    if (found !== null) await endFound(manager, found, origin, {})
  })
}

/**
 * Ends all sessions of a member, with its unopened portal links and the push subscriptions of its browsers. Throws 404
 * when there is no such member.
 */
export async function endSessionsOf(
  { dataSource }: Dependencies,
  actor: AuditActor,
  memberId: string,
): Promise<void> {
  const { organisationId } = actor
  await dataSource.transaction(async (manager) => {
    await requireOrganisation(manager, organisationId)
    // The lock waits for links that are being opened, and these for it.
    if (!(await lockMember(manager, organisationId, memberId, 'pessimistic_write'))) throw notFound('member')
    const count = await deleteSessionsOf(manager, organisationId, memberId)
    await recordAudit(manager, actor, { action: 'sessions.ended', details: { memberId, count } })
  })
}

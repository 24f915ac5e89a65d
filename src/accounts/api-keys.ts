import type { DataSource, EntityManager } from 'typeorm'
import { hashCredential } from '../credentials.ts'
import {
  countRecentKeys,
  findApiKey,
  insertApiKey,
  revokeApiKey,
  type ApiKeyChoice,
  type ApiKeyRow,
} from '../db/queries/api-keys.ts'
import { recordAudit, type AuditActor } from '../db/queries/audit.ts'
import { lockCredentials } from '../db/queries/sessions.ts'
import { findMember, type WrittenApiKey } from '../db/queries/organisations.ts'
import { lockMember } from '../db/queries/push-subscriptions.ts'
import type { Actor } from '../domain/actor.ts'
import { conflict, invalidFields, notFound, unauthenticated } from '../problem-error.ts'
import { newId } from '../ids.ts'
import { callerCachesExpired } from './caller-lookup.ts'
import { requireOrganisation } from './organisations.ts'
import { randomInt } from 'node:crypto'

const BASE_62 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/** 43 characters of base 62 are 256 bits. */
const RANDOM_LENGTH = 43

const PREFIX_LENGTH = 8

/** A new key. `phk_` lets secret scanners recognise one that leaked; a double click selects it whole. */
export function generateApiKey(): string {
  const random = Array.from({ length: RANDOM_LENGTH }, () => BASE_62.charAt(randomInt(BASE_62.length)))
  return `phk_${random.join('')}`
}

/** The length of the visible prefix of a key, which distinguishes keys. */
export function apiKeyPrefix(key: string): string {
  return key.slice(0, PREFIX_LENGTH)
}

/**
 * Makes a key of an existing member. Returns its value, which can be seen this once; null when the member has a key of
 * that name which is not revoked.
 */
export async function createApiKey(
  manager: EntityManager,
  actor: AuditActor,
  { memberId, name, expiresAt }: { memberId: string; name: string; expiresAt: Date | null },
): Promise<{ id: string; key: string } | null> {
  const { organisationId } = actor
  const key = generateApiKey()
  const stored = { id: newId(), prefix: apiKeyPrefix(key), hash: hashCredential(key) }
  if (!(await insertApiKey(manager, { ...stored, organisationId, memberId, name, expiresAt }))) return null
  const details = { id: stored.id, memberId, name, expiresAt }
  await recordAudit(manager, actor, { action: 'api_key.created', details })
  return { id: stored.id, key }
}

/** Records that `actor` created a key, or replaced its value. Of a value it shows the public prefix. */
export async function auditApiKey(
  manager: EntityManager,
  actor: AuditActor,
  { id, prefixBefore }: WrittenApiKey,
  key: { memberId: string; name: string; prefix: string },
): Promise<void> {
  const { memberId, name, prefix } = key
  const before = prefixBefore === null ? null : { prefix: prefixBefore }
  await recordAudit(manager, actor, {
    action: before === null ? 'api_key.created' : 'api_key.replaced',
    details: { id, memberId, name, before, after: { prefix } },
  })
}

/**
 * The same in a transaction of its own, after `check`. Throws 404 without such a member, 409 where the name is taken.
 */
export function createMemberApiKey(
  { dataSource }: { dataSource: DataSource },
  actor: AuditActor,
  wanted: { memberId: string; name: string; expiresAt: Date | null },
  check?: (manager: EntityManager) => Promise<void>,
): Promise<{ key: string; row: ApiKeyRow }> {
  const { organisationId } = actor
  return dataSource.transaction(async (manager) => {
    await requireOrganisation(manager, organisationId)
    if ((await findMember(manager, organisationId, wanted.memberId)) === null) throw notFound('member')
    await check?.(manager)
    const made = await createApiKey(manager, actor, wanted)
    if (made === null) throw conflict('api_key_name_taken', 'The member has an API key of that name.')
    return { key: made.key, row: await findApiKey(manager, organisationId, made.id) }
  })
}

/** Keys that a member may have; those count too that were made within a day, so that revoking makes no room for more. */
const MAX_OWN_KEYS = 50

/**
 * Makes a key of the calling member. Throws 401 where its key or session ended meanwhile, 409 where members make none, or
 * have too many, and 422 where the key would outlive the one that the caller has, directly or in its session.
 */
export function createOwnApiKey(
  { dataSource, memberApiKeys }: { dataSource: DataSource; memberApiKeys: boolean },
  actor: Actor,
  sessionHash: Buffer | null,
  wanted: { name: string; expiresAt: Date | null },
): Promise<{ key: string; row: ApiKeyRow }> {
  const { organisationId, memberId, apiKeyId } = actor
  if (!memberApiKeys) throw conflict('member_api_keys_off', 'Members make no API keys of their own here.')
  return createMemberApiKey({ dataSource }, actor, { ...wanted, memberId }, async (manager) => {
    // Keys are made one by one.
    await lockMember(manager, organisationId, memberId)
    if ((await countRecentKeys(manager, organisationId, memberId)) >= MAX_OWN_KEYS)
      throw conflict('too_many_api_keys', `The member has ${MAX_OWN_KEYS} API keys, or made as many today.`)
    if (!(await lockCredentials(manager, actor, sessionHash))) throw unauthenticated()
    // A session of a portal link has no key, and ends by itself.
    if (apiKeyId !== null) requireOutlived(await findApiKey(manager, organisationId, apiKeyId), wanted)
  })
}

/** Throws 422 unless the caller's key outlives the new one. */
function requireOutlived(own: ApiKeyRow, { expiresAt }: { expiresAt: Date | null }): void {
  if (own.expiresAt === null || (expiresAt !== null && expiresAt <= own.expiresAt)) return
  const detail = `must not be later than ${own.expiresAt.toISOString()}, when the key of the caller expires`
  throw invalidFields([{ pointer: '/expiresAt', code: 'too_large', detail }])
}

/**
 * Revokes a key, which counts nowhere any more when this returns. `before`: it was revoked earlier, perhaps just now by a
 * request whose answer was lost. Null when there is none.
 */
export async function revokeKey(
  { dataSource }: { dataSource: DataSource },
  actor: AuditActor,
  choice: ApiKeyChoice,
): Promise<{ key: ApiKeyRow; before: boolean } | null> {
  const revoked = await dataSource.transaction(async (manager) => {
    const done = await revokeApiKey(manager, actor.organisationId, choice)
    if (done === null || done.before) return done
    const { id, memberId, name } = done.key
    await recordAudit(manager, actor, { action: 'api_key.revoked', details: { id, memberId, name } })
    return done
  })
  if (revoked !== null) await callerCachesExpired()
  return revoked
}

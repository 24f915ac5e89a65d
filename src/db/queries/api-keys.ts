// Repositories, but for two: one statement finds the key with its member's rights, by PostgreSQL's clock, on every
// request, and the conflict of the INSERT is with the partial index of names that are not revoked.
import { timingSafeEqual } from 'node:crypto'
import { IsNull, Raw } from 'typeorm'
import type { KeyCaller } from '../../domain/actor.ts'
import type { Grants } from '../../domain/permissions.ts'
import { hashCredential } from '../../credentials.ts'
import { ApiKey, Member, Organisation } from '../entities/organisation.ts'
import { returning, sql, type Db } from '../connection/db.ts'
import { IS_ERASING } from './erasures.ts'

/** The columns of a `KeyCaller`, of a key and its member. */
export const CALLER = `api_key.id AS "apiKeyId", member.organisation_id AS "organisationId", member.id AS "memberId",
  member.full_access AS "fullAccess", member.permissions, api_key.hash AS "keyHash", ${IS_ERASING} AS "isErasing"`

/** Whether a key is neither revoked nor expired. */
export const IS_IN_FORCE = `api_key.revoked_at IS NULL AND coalesce(api_key.expires_at > now(), true)`

/** Whether the use of a key is to be noted. */
export const IS_TO_BE_TOUCHED = `coalesce(api_key.last_used_at < now() - interval '1 minute', true)`

/** Records that the key is used now; called at most once a minute. */
export async function touchApiKey(db: Db, id: string): Promise<void> {
  await db.getRepository(ApiKey).update({ id }, { lastUsedAt: () => 'now()' })
}

/** Compared with where no key is found. */
const NO_HASH = Buffer.alloc(32)

/**
 * The caller behind a key, or null when it is unknown, revoked or expired, which takes the same one statement each.
 * `expiresInMs`: how long the key is still valid; null when it has no end.
 */
export async function findCaller(
  db: Db,
  key: string,
): Promise<{ caller: KeyCaller; expiresInMs: number | null } | null> {
  const hash = hashCredential(key)
  const found = await sql(
    `SELECT ${CALLER}, ${IS_TO_BE_TOUCHED} AS touch, ${IS_IN_FORCE} AS valid,
            (extract(epoch FROM api_key.expires_at - now()) * 1000)::float8 AS "expiresInMs"
       FROM api_key
       JOIN member ON member.organisation_id = api_key.organisation_id AND member.id = api_key.member_id
      WHERE api_key.hash = :hash`,
    { hash },
  ).first<KeyCaller & { valid: boolean; expiresInMs: number | null; touch: boolean }>(db)
  // The index stops at the first byte that differs; without a choice of the digest nothing is learnt from that.
  const same = timingSafeEqual(found?.keyHash ?? NO_HASH, hash)
  if (found === null || !same) return null
  const { valid, touch, expiresInMs, ...caller } = found
  if (!valid) return null
  if (touch) await touchApiKey(db, caller.apiKeyId)
  return { caller, expiresInMs }
}

/** What a key allows at this instant. `hash`: of its value, which may be replaced under the same id. */
export type KeyRights = Grants & { apiKeyId: string; hash: Buffer }

/** The rights of those of `apiKeyIds` that count now. Like the sweep, it serves every organisation at once. */
export async function findKeyRights(db: Db, apiKeyIds: string[]): Promise<KeyRights[]> {
  return sql(
    `SELECT api_key.id AS "apiKeyId", api_key.hash, member.full_access AS "fullAccess", member.permissions
       FROM api_key
       JOIN member ON member.organisation_id = api_key.organisation_id AND member.id = api_key.member_id
      WHERE api_key.id = ANY(:apiKeyIds::uuid[]) AND ${IS_IN_FORCE} AND NOT ${IS_ERASING}`,
    { apiKeyIds },
  ).rows(db)
}

const SHOWN = {
  id: true,
  memberId: true,
  name: true,
  prefix: true,
  createdAt: true,
  lastUsedAt: true,
  expiresAt: true,
  revokedAt: true,
} as const

/** A key as it is listed: nothing of its value but the public prefix. */
export type ApiKeyRow = Pick<ApiKey, keyof typeof SHOWN>

/** One key of an organisation: by its id, of one member where that is given, or the one that its member knows by this name. */
export type ApiKeyChoice = (Pick<ApiKey, 'id'> & { memberId?: string }) | Pick<ApiKey, 'memberId' | 'name'>

/** Returns which of the two does not exist, or null when both do. Without a member only the organisation is checked. */
export async function findMissing(
  db: Db,
  organisationId: string,
  memberId: string | null,
): Promise<'organisation' | 'member' | null> {
  if (!(await db.getRepository(Organisation).existsBy({ id: organisationId }))) return 'organisation'
  if (memberId === null) return null
  return (await db.getRepository(Member).existsBy({ organisationId, id: memberId })) ? null : 'member'
}

/** False, with nothing written, when the member has a key of that name which is not revoked. */
export async function insertApiKey(
  db: Db,
  key: Pick<ApiKey, 'id' | 'organisationId' | 'memberId' | 'name' | 'prefix' | 'hash' | 'expiresAt'>,
): Promise<boolean> {
  const { id, organisationId, memberId, name, prefix, hash, expiresAt } = key
  const inserted = await sql(
    `INSERT INTO api_key (id, organisation_id, member_id, name, prefix, hash, expires_at)
     VALUES (:id, :organisationId, :memberId, :name, :prefix, :hash, :expiresAt)
     ON CONFLICT (organisation_id, member_id, name) WHERE revoked_at IS NULL DO NOTHING RETURNING id`,
    { id, organisationId, memberId, name, prefix, hash, expiresAt },
  ).first(db)
  return inserted !== null
}

export function findApiKey(db: Db, organisationId: string, id: string): Promise<ApiKeyRow> {
  return db.getRepository(ApiKey).findOneOrFail({ select: SHOWN, where: { organisationId, id } })
}

/** The organisation's keys, or one member's, the revoked ones among them; by member, oldest first. */
export function listApiKeys(db: Db, organisationId: string, memberId: string | null): Promise<ApiKeyRow[]> {
  return db.getRepository(ApiKey).find({
    select: SHOWN,
    where: memberId === null ? { organisationId } : { organisationId, memberId },
    order: { memberId: 'ASC', createdAt: 'ASC', id: 'ASC' },
  })
}

/** A member's keys that are not revoked, oldest first. */
export function listKeysInForce(db: Db, organisationId: string, memberId: string): Promise<ApiKeyRow[]> {
  return db.getRepository(ApiKey).find({
    select: SHOWN,
    where: { organisationId, memberId, revokedAt: IsNull() },
    order: { createdAt: 'ASC', id: 'ASC' },
  })
}

/** Counts a member's keys that are not revoked, or were made within a day. The caller holds the member's lock. */
export function countRecentKeys(db: Db, organisationId: string, memberId: string): Promise<number> {
  return db.getRepository(ApiKey).countBy([
    { organisationId, memberId, revokedAt: IsNull() },
    { organisationId, memberId, createdAt: Raw((column) => `${column} > now() - interval '24 hours'`) },
  ])
}

/**
 * Revokes the key. One that was revoked before keeps its time and comes back with `before`; null when there is none.
 * Of several that had the name it is the one in force, else the one revoked last.
 */
export async function revokeApiKey(
  db: Db,
  organisationId: string,
  choice: ApiKeyChoice,
): Promise<{ key: ApiKeyRow; before: boolean } | null> {
  const keys = db.getRepository(ApiKey)
  const where = { ...choice, organisationId }
  const revoke = keys
    .createQueryBuilder()
    .update()
    .set({ revokedAt: () => 'now()' })
    .where({ ...where, revokedAt: IsNull() })
  const [revoked] = await returning(revoke, SHOWN)
  if (revoked !== undefined) return { key: revoked, before: false }
  const earlier = await keys.findOne({ select: SHOWN, where, order: { revokedAt: 'DESC' } })
  return earlier === null ? null : { key: earlier, before: true }
}

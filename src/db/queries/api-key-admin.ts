// Repositories, but for the INSERT: its conflict is with the partial index of names that are not revoked.
import { IsNull, MoreThan } from 'typeorm'
import { ApiKey } from '../entities/api-key.ts'
import { Member, Organisation } from '../entities/organisation.ts'
import { returning, sql, type Db } from '../connection/db.ts'

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

/** Counts a member's keys that are not revoked, or were made after `since`. Locks the member: keys are made one by one. */
export async function countRecentKeys(
  db: Db,
  organisationId: string,
  memberId: string,
  since: Date,
): Promise<number> {
  const member = { organisationId, id: memberId }
  await db.getRepository(Member).findOne({ where: member, lock: { mode: 'for_no_key_update' } })
  return db.getRepository(ApiKey).countBy([
    { organisationId, memberId, revokedAt: IsNull() },
    { organisationId, memberId, createdAt: MoreThan(since) },
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

import { createHash, timingSafeEqual } from 'node:crypto'
import type { Grants } from '../../domain/permissions.ts'
import { firstRow, rows, type Db } from '../db.ts'

/** Who calls: the member that an API key acts as. `keyHash`: of the value that the key was found with. */
export type Caller = Grants & {
  organisationId: string
  memberId: string
  apiKeyId: string
  keyHash: Buffer
}

/** SHA-256 of the whole key. Keys carry enough randomness that a slow hash would add nothing. */
export function hashApiKey(key: string): Buffer {
  return createHash('sha256').update(key, 'utf8').digest()
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
): Promise<{ caller: Caller; expiresInMs: number | null } | null> {
  const hash = hashApiKey(key)
  const found = await firstRow<Caller & { valid: boolean; expiresInMs: number | null; touch: boolean }>(
    db,
    `SELECT k.id AS "apiKeyId", m.organisation_id AS "organisationId", m.id AS "memberId",
            m.full_access AS "fullAccess", m.permissions, k.hash AS "keyHash",
            k.revoked_at IS NULL AND coalesce(k.expires_at > now(), true) AS valid,
            (extract(epoch FROM k.expires_at - now()) * 1000)::float8 AS "expiresInMs",
            coalesce(k.last_used_at < now() - interval '1 minute', true) AS touch
       FROM api_key k
       JOIN member m ON m.organisation_id = k.organisation_id AND m.id = k.member_id
      WHERE k.hash = $1`,
    [hash],
  )
  // The index stops at the first byte that differs; whoever cannot choose the digest learns nothing from that.
  const same = timingSafeEqual(found?.keyHash ?? NO_HASH, hash)
  if (found === null || !same) return null
  const { valid, touch, expiresInMs, ...caller } = found
  if (!valid) return null
  if (touch) await rows(db, `UPDATE api_key SET last_used_at = now() WHERE id = $1`, [caller.apiKeyId])
  return { caller, expiresInMs }
}

/** What a key allows at this instant. `hash`: of its value, which may be replaced under the same id. */
export type KeyRights = Grants & { apiKeyId: string; hash: Buffer }

/** The rights of those of `apiKeyIds` that count now. Like the sweep, it serves every organisation at once. */
export async function findKeyRights(db: Db, apiKeyIds: string[]): Promise<KeyRights[]> {
  return rows(
    db,
    `SELECT k.id AS "apiKeyId", k.hash, m.full_access AS "fullAccess", m.permissions
       FROM api_key k
       JOIN member m ON m.organisation_id = k.organisation_id AND m.id = k.member_id
      WHERE k.id = ANY($1::uuid[]) AND k.revoked_at IS NULL AND coalesce(k.expires_at > now(), true)`,
    [apiKeyIds],
  )
}

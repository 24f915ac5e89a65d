// Hand-written: one statement finds the key with its member's rights, by PostgreSQL's clock, on every request.
import { timingSafeEqual } from 'node:crypto'
import type { KeyCaller } from '../../domain/actor.ts'
import { hashCredential } from '../../credentials.ts'
import type { Grants } from '../../domain/permissions.ts'
import { ApiKey } from '../entities/api-key.ts'
import { sql, type Db } from '../connection/db.ts'
import { isErasingSql } from './erasures.ts'

/** The columns of a `KeyCaller`, of key `k` and its member `m`; `touch`: the use of the key is to be noted. */
export const CALLER = `k.id AS "apiKeyId", m.organisation_id AS "organisationId", m.id AS "memberId",
  m.full_access AS "fullAccess", m.permissions, k.hash AS "keyHash",
  ${isErasingSql('m.organisation_id')} AS "isErasing",
  coalesce(k.last_used_at < now() - interval '1 minute', true) AS touch`

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
    `SELECT ${CALLER},
            k.revoked_at IS NULL AND coalesce(k.expires_at > now(), true) AS valid,
            (extract(epoch FROM k.expires_at - now()) * 1000)::float8 AS "expiresInMs"
       FROM api_key k
       JOIN member m ON m.organisation_id = k.organisation_id AND m.id = k.member_id
      WHERE k.hash = :hash`,
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
    `SELECT k.id AS "apiKeyId", k.hash, m.full_access AS "fullAccess", m.permissions
       FROM api_key k
       JOIN member m ON m.organisation_id = k.organisation_id AND m.id = k.member_id
      WHERE k.id = ANY(:apiKeyIds::uuid[]) AND k.revoked_at IS NULL AND coalesce(k.expires_at > now(), true)
        AND NOT ${isErasingSql('k.organisation_id')}`,
    { apiKeyIds },
  ).rows(db)
}

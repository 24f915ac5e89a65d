import { createHash } from 'node:crypto'
import type { Grants } from '../../domain/permissions.ts'
import { firstRow, rows, type Db } from '../db.ts'

/** Who calls: the member that an API key acts as. */
export type Caller = Grants & { organisationId: string; memberId: string; apiKeyId: string }

/** SHA-256 of the whole key. Keys carry enough randomness that a slow hash would add nothing. */
export function hashApiKey(key: string): Buffer {
  return createHash('sha256').update(key, 'utf8').digest()
}

/** The caller behind a key, or null when it is unknown, revoked or expired. */
export async function findCaller(db: Db, key: string): Promise<Caller | null> {
  const found = await firstRow<Caller & { touch: boolean }>(
    db,
    `SELECT k.id AS "apiKeyId", m.organisation_id AS "organisationId", m.id AS "memberId",
            m.full_access AS "fullAccess", m.permissions,
            coalesce(k.last_used_at < now() - interval '1 minute', true) AS touch
       FROM api_key k
       JOIN member m ON m.organisation_id = k.organisation_id AND m.id = k.member_id
      WHERE k.hash = $1 AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now())`,
    [hashApiKey(key)],
  )
  if (found === null) return null
  const { touch, ...caller } = found
  if (touch) await rows(db, `UPDATE api_key SET last_used_at = now() WHERE id = $1`, [caller.apiKeyId])
  return caller
}

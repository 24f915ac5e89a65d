import { createHash } from 'node:crypto'
import { firstRow, rows, type Db } from '../db.ts'
import type { Caller } from './api-keys.ts'

/** A session that counts: its row, and until when. */
export type Session = { hash: Buffer; expiresAt: Date }

/** SHA-256 of a session's token. Tokens are random enough that a slow hash would add nothing. */
export function hashSessionToken(token: string): Buffer {
  return createHash('sha256').update(token, 'utf8').digest()
}

/** Long enough for a working day. */
const SESSION_HOURS = 12

/** More browsers than that are nobody's; the oldest make room, so that a key cannot fill the table. */
const SESSIONS_PER_KEY = 20

/**
 * Opens a session of an API key with the value of this hash, and deletes those that have expired. Returns its end, the
 * key's where that is earlier; null when the key has another value by now.
 */
export async function insertSession(
  db: Db,
  organisationId: string,
  session: { hash: Buffer; apiKeyId: string; keyHash: Buffer },
): Promise<Date | null> {
  const { hash, apiKeyId, keyHash } = session
  await rows(db, `DELETE FROM session WHERE expires_at < now()`)
  const inserted = await firstRow<{ expiresAt: Date }>(
    db,
    `INSERT INTO session (hash, api_key_id, key_hash, expires_at)
     SELECT $1, id, hash, least(now() + make_interval(hours => $4), expires_at)
       FROM api_key WHERE id = $2 AND organisation_id = $3 AND hash = $5
     RETURNING expires_at AS "expiresAt"`,
    [hash, apiKeyId, organisationId, SESSION_HOURS, keyHash],
  )
  if (inserted === null) return null
  await rows(
    db,
    `DELETE FROM session WHERE api_key_id = $1 AND hash IN (
       SELECT hash FROM session WHERE api_key_id = $1 ORDER BY created_at DESC, hash OFFSET $2)`,
    [apiKeyId, SESSIONS_PER_KEY],
  )
  return inserted.expiresAt
}

/**
 * The caller behind a session's token, or null when the session is unknown or over, or its key is revoked, expired or
 * has another value than at the sign-in.
 * Like an API key it is looked up without its organisation, which it finds.
 */
export async function findCallerOfSession(
  db: Db,
  hash: Buffer,
): Promise<{ caller: Caller; session: Session } | null> {
  const found = await firstRow<Caller & { expiresAt: Date; touch: boolean }>(
    db,
    `SELECT k.id AS "apiKeyId", m.organisation_id AS "organisationId", m.id AS "memberId",
            m.full_access AS "fullAccess", m.permissions, k.hash AS "keyHash", s.expires_at AS "expiresAt",
            coalesce(k.last_used_at < now() - interval '1 minute', true) AS touch
       FROM session s
       JOIN api_key k ON k.id = s.api_key_id AND k.hash = s.key_hash
       JOIN member m ON m.organisation_id = k.organisation_id AND m.id = k.member_id
      WHERE s.hash = $1 AND s.expires_at > now()
        AND k.revoked_at IS NULL AND coalesce(k.expires_at > now(), true)`,
    [hash],
  )
  if (found === null) return null
  const { expiresAt, touch, ...caller } = found
  if (touch) await rows(db, `UPDATE api_key SET last_used_at = now() WHERE id = $1`, [caller.apiKeyId])
  return { caller, session: { hash, expiresAt } }
}

export async function deleteSession(db: Db, organisationId: string, hash: Buffer): Promise<void> {
  await rows(
    db,
    `DELETE FROM session s USING api_key k WHERE k.id = s.api_key_id AND k.organisation_id = $1 AND s.hash = $2`,
    [organisationId, hash],
  )
}

/** What a signed-in person is greeted with. */
export type Identity = { organisationName: string; timeZone: string; memberName: string }

export async function findIdentity(
  db: Db,
  organisationId: string,
  memberId: string,
): Promise<Identity | null> {
  return firstRow(
    db,
    `SELECT o.name AS "organisationName", o.time_zone AS "timeZone", m.name AS "memberName"
       FROM member m JOIN organisation o ON o.id = m.organisation_id
      WHERE o.id = $1 AND m.id = $2`,
    [organisationId, memberId],
  )
}

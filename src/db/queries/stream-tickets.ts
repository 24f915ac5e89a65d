import type { Caller } from './api-keys.ts'
import { firstRow, type Db } from '../db.ts'

/** So many expired tickets go with each new one: the table stays as small as what is asked for in half a minute. */
const TAKEN_AWAY = 10

/**
 * Keeps a ticket for `seconds`, by its hash only. Returns until when it counts; null when the key has another value by
 * now.
 */
export async function insertStreamTicket(
  db: Db,
  ticket: { hash: Buffer; organisationId: string; apiKeyId: string; keyHash: Buffer; seconds: number },
): Promise<Date | null> {
  const { hash, organisationId, apiKeyId, keyHash, seconds } = ticket
  const inserted = await firstRow<{ expiresAt: Date }>(
    db,
    `WITH expired AS (
       DELETE FROM stream_ticket WHERE hash = ANY(ARRAY(
         SELECT hash FROM stream_ticket WHERE expires_at < now() LIMIT ${TAKEN_AWAY} FOR UPDATE SKIP LOCKED))
     )
     INSERT INTO stream_ticket (hash, api_key_id, key_hash, expires_at)
     SELECT $1::bytea, id, hash, now() + $4::int * interval '1 second'
       FROM api_key WHERE id = $3 AND organisation_id = $2 AND hash = $5
     RETURNING expires_at AS "expiresAt"`,
    [hash, organisationId, apiKeyId, seconds, keyHash],
  )
  return inserted?.expiresAt ?? null
}

/**
 * Takes a ticket; of many that try at the same time, in whichever process, one gets it. Null when it is unknown, used or
 * expired, or when its key is revoked, expired or has another value by now. Like the look-up of a key, it is what finds the organisation.
 */
export async function takeStreamTicket(db: Db, hash: Buffer): Promise<Caller | null> {
  return firstRow<Caller>(
    db,
    `WITH taken AS (
       DELETE FROM stream_ticket WHERE hash = $1 RETURNING api_key_id, key_hash, expires_at
     )
     SELECT k.id AS "apiKeyId", m.organisation_id AS "organisationId", m.id AS "memberId",
            m.full_access AS "fullAccess", m.permissions, k.hash AS "keyHash"
       FROM taken t
       JOIN api_key k ON k.id = t.api_key_id AND k.hash = t.key_hash
       JOIN member m ON m.organisation_id = k.organisation_id AND m.id = k.member_id
      WHERE t.expires_at > now() AND k.revoked_at IS NULL AND coalesce(k.expires_at > now(), true)`,
    [hash],
  )
}

// Hand-written: a ticket is stored, and taken once, in one statement with the key that it depends on.
import type { KeyCaller } from '../../domain/actor.ts'
import { sql, type Db } from '../connection/db.ts'
import { isErasingSql } from './erasures.ts'

/** Expired tickets that are deleted with each new one: the table stays as small as the tickets of half a minute. */
const DELETED_WITH_EACH = 10

/**
 * Keeps a ticket for `seconds`, by its hash only. Returns until when it counts; null when the key has another value by
 * now.
 */
export async function insertStreamTicket(
  db: Db,
  ticket: { hash: Buffer; organisationId: string; apiKeyId: string; keyHash: Buffer; seconds: number },
): Promise<Date | null> {
  const { hash, organisationId, apiKeyId, keyHash, seconds } = ticket
  const inserted = await sql(
    `WITH expired AS (
       DELETE FROM stream_ticket WHERE hash = ANY(ARRAY(
         SELECT hash FROM stream_ticket WHERE expires_at < now() LIMIT ${DELETED_WITH_EACH} FOR UPDATE SKIP LOCKED))
     )
     INSERT INTO stream_ticket (hash, api_key_id, key_hash, expires_at)
     SELECT :hash::bytea, id, hash, now() + :seconds::int * interval '1 second'
       FROM api_key WHERE id = :apiKeyId AND organisation_id = :organisationId AND hash = :keyHash
     RETURNING expires_at AS "expiresAt"`,
    { hash, organisationId, apiKeyId, keyHash, seconds },
  ).first<{ expiresAt: Date }>(db)
  return inserted?.expiresAt ?? null
}

/**
 * Takes a ticket; of many that try at the same time, in any process, one gets it. Null when it is unknown, used or
 * expired, or when its key is revoked, expired or has another value by now. Like the query for a
 * key it needs no organisation and returns it.
 */
export async function takeStreamTicket(db: Db, hash: Buffer): Promise<KeyCaller | null> {
  return sql(
    `WITH taken AS (
       DELETE FROM stream_ticket WHERE hash = :hash RETURNING api_key_id, key_hash, expires_at
     )
     SELECT k.id AS "apiKeyId", m.organisation_id AS "organisationId", m.id AS "memberId",
            m.full_access AS "fullAccess", m.permissions, k.hash AS "keyHash",
            ${isErasingSql('m.organisation_id')} AS "isErasing"
       FROM taken t
       JOIN api_key k ON k.id = t.api_key_id AND k.hash = t.key_hash
       JOIN member m ON m.organisation_id = k.organisation_id AND m.id = k.member_id
      WHERE t.expires_at > now() AND k.revoked_at IS NULL AND coalesce(k.expires_at > now(), true)`,
    { hash },
  ).first<KeyCaller>(db)
}

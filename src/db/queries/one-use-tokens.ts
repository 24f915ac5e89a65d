// Hand-written: a token is stored with the key or member that it depends on, and taken once, in one statement each.
import type { KeyCaller } from '../../domain/actor.ts'
import { sql, type Db } from '../connection/db.ts'
import { CALLER, IS_IN_FORCE } from './api-keys.ts'
import { IS_ERASING } from './erasures.ts'

/** Expired tokens that are deleted with each new one: the tables stay about as small as the tokens that count. */
const DELETED_WITH_EACH = 10

/** SQL that deletes expired tokens of a table, passing over those that another statement deletes. */
export const deleteExpired = (table: 'stream_ticket' | 'portal_link' | 'session'): string =>
  `DELETE FROM ${table} WHERE hash = ANY(ARRAY(
     SELECT hash FROM ${table} WHERE expires_at < now() LIMIT ${DELETED_WITH_EACH} FOR UPDATE SKIP LOCKED))`

/**
 * Keeps a ticket for `seconds`, by its hash only. Returns until when it counts; null when the key has another value by
 * now.
 */
export async function insertStreamTicket(
  db: Db,
  ticket: { hash: Buffer; organisationId: string; apiKeyId: string; keyHash: Buffer; seconds: number },
): Promise<Date | null> {
  const inserted = await sql(
    `WITH expired AS (${deleteExpired('stream_ticket')})
     INSERT INTO stream_ticket (hash, api_key_id, key_hash, expires_at)
     SELECT :hash::bytea, id, hash, now() + :seconds::int * interval '1 second'
       FROM api_key WHERE id = :apiKeyId AND organisation_id = :organisationId AND hash = :keyHash
     RETURNING expires_at AS "expiresAt"`,
    ticket,
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
     SELECT ${CALLER}
       FROM taken
       JOIN api_key ON api_key.id = taken.api_key_id AND api_key.hash = taken.key_hash AND ${IS_IN_FORCE}
       JOIN member ON member.organisation_id = api_key.organisation_id AND member.id = api_key.member_id
      WHERE taken.expires_at > now()`,
    { hash },
  ).first(db)
}

/** Keeps a link for `seconds`, by the hash of its token only. Returns its end; null when there is no such member. */
export async function insertPortalLink(
  db: Db,
  link: { hash: Buffer; organisationId: string; memberId: string; path: string; seconds: number },
): Promise<Date | null> {
  const inserted = await sql(
    `WITH expired AS (${deleteExpired('portal_link')})
     INSERT INTO portal_link (hash, organisation_id, member_id, path, expires_at)
     SELECT :hash::bytea, organisation_id, id, :path::text, now() + :seconds::int * interval '1 second'
       FROM member WHERE organisation_id = :organisationId AND id = :memberId AND NOT ${IS_ERASING}
        FOR KEY SHARE
     RETURNING expires_at AS "expiresAt"`,
    link,
  ).first<{ expiresAt: Date }>(db)
  return inserted?.expiresAt ?? null
}

/**
 * Takes a link; of many that try at the same time, in any process, one gets it. Null when it is unknown, used or
 * expired. Like the query for a key it needs no organisation and returns it. The member stays until the transaction
 * ends; it is locked before the link, in the order in which the deletion of a member locks both.
 */
export async function takePortalLink(
  db: Db,
  hash: Buffer,
): Promise<{ organisationId: string; memberId: string; path: string } | null> {
  return sql(
    `WITH owner AS (
       SELECT member.id, ${IS_ERASING} AS is_erasing FROM portal_link
         JOIN member ON member.organisation_id = portal_link.organisation_id AND member.id = portal_link.member_id
        WHERE portal_link.hash = :hash FOR KEY SHARE OF member
     ), taken AS (
       DELETE FROM portal_link WHERE hash = :hash AND EXISTS (SELECT 1 FROM owner) RETURNING *
     )
     SELECT taken.organisation_id AS "organisationId", taken.member_id AS "memberId", taken.path
       FROM taken, owner WHERE taken.expires_at > now() AND NOT owner.is_erasing`,
    { hash },
  ).first(db)
}

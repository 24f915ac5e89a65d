// Hand-written: a link is stored with the member that it needs, and taken once, in one statement each.
import { sql, type Db } from '../connection/db.ts'
import { isErasingSql } from './erasures.ts'

/** Expired links that are deleted with each new one: the table stays as small as the links of a few minutes. */
const DELETED_WITH_EACH = 10

/** Keeps a link for `seconds`, by the hash of its token only. Returns its end; null when there is no such member. */
export async function insertPortalLink(
  db: Db,
  link: { hash: Buffer; organisationId: string; memberId: string; path: string; seconds: number },
): Promise<Date | null> {
  const inserted = await sql(
    `WITH expired AS (
       DELETE FROM portal_link WHERE hash = ANY(ARRAY(
         SELECT hash FROM portal_link WHERE expires_at < now() LIMIT ${DELETED_WITH_EACH} FOR UPDATE SKIP LOCKED))
     )
     INSERT INTO portal_link (hash, organisation_id, member_id, path, expires_at)
     SELECT :hash::bytea, organisation_id, id, :path::text, now() + :seconds::int * interval '1 second'
       FROM member WHERE organisation_id = :organisationId AND id = :memberId AND NOT ${isErasingSql('organisation_id')}
        FOR KEY SHARE
     RETURNING expires_at AS "expiresAt"`,
    { ...link },
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
       SELECT m.id FROM portal_link l
         JOIN member m ON m.organisation_id = l.organisation_id AND m.id = l.member_id
        WHERE l.hash = :hash FOR KEY SHARE OF m
     ), taken AS (
       DELETE FROM portal_link WHERE hash = :hash AND EXISTS (SELECT 1 FROM owner) RETURNING *
     )
     SELECT organisation_id AS "organisationId", member_id AS "memberId", path
       FROM taken WHERE expires_at > now() AND NOT ${isErasingSql('organisation_id')}`,
    { hash },
  ).first<{ organisationId: string; memberId: string; path: string }>(db)
}

import type { Caller } from './api-keys.ts'
import { firstRow, type Db } from '../db.ts'

/** So many expired tickets go with each new one: the table stays as small as what is asked for in half a minute. */
const TAKEN_AWAY = 10

/** Keeps a ticket for `seconds`, by its hash only; returns until when it counts. */
export async function insertStreamTicket(
  db: Db,
  ticket: { hash: Buffer; organisationId: string; apiKeyId: string; seconds: number },
): Promise<Date> {
  const { hash, organisationId, apiKeyId, seconds } = ticket
  const inserted = await firstRow<{ expiresAt: Date }>(
    db,
    `WITH expired AS (
       DELETE FROM stream_ticket WHERE hash = ANY(ARRAY(
         SELECT hash FROM stream_ticket WHERE expires_at < now() LIMIT ${TAKEN_AWAY} FOR UPDATE SKIP LOCKED))
     )
     INSERT INTO stream_ticket (hash, api_key_id, expires_at)
     SELECT $1::bytea, id, now() + $4::int * interval '1 second' FROM api_key WHERE id = $3 AND organisation_id = $2
     RETURNING expires_at AS "expiresAt"`,
    [hash, organisationId, apiKeyId, seconds],
  )
  if (inserted === null) throw new Error('a ticket was asked for with a key that is not there')
  return inserted.expiresAt
}

/**
 * Takes a ticket; of many that try at the same time, in whichever process, one gets it. Null when it is unknown, used or
 * expired, or when its key no longer counts. Like the look-up of a key, it is what finds the organisation.
 */
export async function takeStreamTicket(db: Db, hash: Buffer): Promise<Caller | null> {
  return firstRow<Caller>(
    db,
    `WITH taken AS (
       DELETE FROM stream_ticket WHERE hash = $1 RETURNING api_key_id, expires_at
     )
     SELECT k.id AS "apiKeyId", m.organisation_id AS "organisationId", m.id AS "memberId",
            m.full_access AS "fullAccess", m.permissions
       FROM taken t
       JOIN api_key k ON k.id = t.api_key_id
       JOIN member m ON m.organisation_id = k.organisation_id AND m.id = k.member_id
      WHERE t.expires_at > now() AND k.revoked_at IS NULL AND coalesce(k.expires_at > now(), true)`,
    [hash],
  )
}

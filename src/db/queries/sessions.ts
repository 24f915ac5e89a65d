// Hand-written: a session is opened, found and ended in one statement with the key that it depends on.
import { Member, Organisation } from '../entities/organisation.ts'
import type { Session as SessionEntity } from '../entities/organisation.ts'
import { sql, type Db } from '../connection/db.ts'
import type { Caller } from '../../domain/actor.ts'
import { CALLER, IS_IN_FORCE, IS_TO_BE_TOUCHED, touchApiKey } from './api-keys.ts'
import { deleteExpired } from './one-use-tokens.ts'

/** A session that counts: its row, and until when. */
export type Session = Pick<SessionEntity, 'hash' | 'expiresAt'>

/** Long enough for a working day. */
const SESSION_END = `now() + interval '12 hours'`

/** More than the browsers of one member; the oldest are deleted, so that the table stays bounded. */
const MAX_SESSIONS_EACH = 20

/**
 * Opens a session of an API key with the value of this hash. Returns its end, the key's where that is earlier; null when
 * the key has another value by now.
 */
export async function insertSession(
  db: Db,
  organisationId: string,
  session: { hash: Buffer; apiKeyId: string; keyHash: Buffer },
): Promise<Date | null> {
  const { hash, apiKeyId, keyHash } = session
  await deleteSurplus(db, 'api_key_id = :apiKeyId', { apiKeyId })
  const inserted = await sql(
    `INSERT INTO session (hash, api_key_id, key_hash, expires_at)
     SELECT :hash, id, hash, least(${SESSION_END}, expires_at)
       FROM api_key WHERE id = :apiKeyId AND organisation_id = :organisationId AND hash = :keyHash
     RETURNING expires_at AS "expiresAt"`,
    { hash, apiKeyId, organisationId, keyHash },
  ).first<{ expiresAt: Date }>(db)
  return inserted?.expiresAt ?? null
}

/** Opens a session of a member without an API key. Returns its end. */
export async function insertMemberSession(
  db: Db,
  session: { hash: Buffer; organisationId: string; memberId: string },
): Promise<Date> {
  const { hash, organisationId, memberId } = session
  const owner = 'organisation_id = :organisationId AND member_id = :memberId'
  await deleteSurplus(db, owner, { organisationId, memberId })
  const insert = sql(
    `INSERT INTO session (hash, organisation_id, member_id, expires_at)
     VALUES (:hash, :organisationId, :memberId, ${SESSION_END}) RETURNING expires_at AS "expiresAt"`,
    { hash, organisationId, memberId },
  )
  return (await insert.one<Pick<Session, 'expiresAt'>>(db)).expiresAt
}

/** Opens a session of an operator key. Returns its end. */
export async function insertOperatorSession(
  db: Db,
  session: { hash: Buffer; name: string; keyHash: Buffer },
): Promise<Date> {
  const { hash, name: operator, keyHash } = session
  await deleteSurplus(db, 'operator = :operator', { operator })
  const insert = sql(
    `INSERT INTO session (hash, operator, key_hash, expires_at)
     VALUES (:hash, :operator, :keyHash, ${SESSION_END}) RETURNING expires_at AS "expiresAt"`,
    { hash, operator, keyHash },
  )
  return (await insert.one<Pick<Session, 'expiresAt'>>(db)).expiresAt
}

/** Deletes some expired sessions, and the oldest of an owner, which `owner` selects, so that it may have another. */
async function deleteSurplus(db: Db, owner: string, parameters: Record<string, unknown>): Promise<void> {
  await sql(
    `WITH expired AS (${deleteExpired('session')})
     DELETE FROM session WHERE hash = ANY(ARRAY(
       SELECT hash FROM session WHERE ${owner} ORDER BY created_at DESC, hash OFFSET ${MAX_SESSIONS_EACH - 1}))`,
    parameters,
  ).rows(db)
}

/** The session of an operator key, with the key that it was opened with; null when it is unknown or over. */
export async function findOperatorSession(
  db: Db,
  hash: Buffer,
): Promise<(Session & { operator: string; keyHash: Buffer }) | null> {
  return sql(
    `SELECT hash, operator, key_hash AS "keyHash", expires_at AS "expiresAt"
       FROM session WHERE hash = :hash AND operator IS NOT NULL AND expires_at > now()`,
    { hash },
  ).first(db)
}

/** Ends a session of an operator key. */
export async function deleteOperatorSession(db: Db, hash: Buffer): Promise<void> {
  await sql(`DELETE FROM session WHERE hash = :hash AND operator IS NOT NULL`, { hash }).rows(db)
}

/**
 * The caller behind a session's token, or null when the session is unknown or over, or its key is revoked, expired or
 * has another value than at the sign-in. The member's rights are those of this instant.
 * Like the query for an API key it needs no organisation and returns it.
 */
export async function findCallerOfSession(
  db: Db,
  hash: Buffer,
): Promise<{ caller: Caller; session: Session } | null> {
  const found = await sql(
    `SELECT ${CALLER}, ${IS_TO_BE_TOUCHED} AS touch, session.expires_at AS "expiresAt"
       FROM session
       LEFT JOIN api_key ON api_key.id = session.api_key_id AND api_key.hash = session.key_hash AND ${IS_IN_FORCE}
       JOIN member ON member.organisation_id = coalesce(api_key.organisation_id, session.organisation_id)
                  AND member.id = coalesce(api_key.member_id, session.member_id)
      WHERE session.hash = :hash AND session.expires_at > now()`,
    { hash },
  ).first<Caller & { expiresAt: Date; touch: boolean }>(db)
  if (found === null) return null
  const { expiresAt, touch, ...caller } = found
  if (touch && caller.apiKeyId !== null) await touchApiKey(db, caller.apiKeyId)
  return { caller, session: { hash, expiresAt } }
}

/**
 * Locks what a request was authenticated with until the transaction ends, so that nothing is made for a key or session
 * that has ended by then. False when one has. The caller has locked the member, which is locked before.
 */
export async function lockCredentials(
  db: Db,
  { apiKeyId, keyHash }: Pick<Caller, 'apiKeyId' | 'keyHash'>,
  sessionHash: Buffer | null,
): Promise<boolean> {
  const ofKey = `SELECT 1 FROM api_key WHERE id = :apiKeyId AND hash = :keyHash AND ${IS_IN_FORCE} FOR SHARE`
  if (apiKeyId !== null && (await sql(ofKey, { apiKeyId, keyHash }).first(db)) === null) return false
  const ofSession = 'SELECT 1 FROM session WHERE hash = :sessionHash AND expires_at > now() FOR KEY SHARE'
  return sessionHash === null || (await sql(ofSession, { sessionHash }).first(db)) !== null
}

/** Locks a session that is about to end: nothing more is made in it. */
export async function lockSession(db: Db, hash: Buffer): Promise<void> {
  await sql('SELECT 1 FROM session WHERE hash = :hash FOR UPDATE', { hash }).rows(db)
}

/** Ends a session, with the push subscriptions that were made in it, also by a request that it had to wait for. */
export async function deleteSession(db: Db, organisationId: string, hash: Buffer): Promise<void> {
  const of = { organisationId, hash }
  await sql(
    `DELETE FROM session
      WHERE hash = :hash
        AND (organisation_id = :organisationId OR EXISTS (
          SELECT 1 FROM api_key WHERE id = session.api_key_id AND api_key.organisation_id = :organisationId))`,
    of,
  ).rows(db)
  await sql(
    'DELETE FROM push_subscription WHERE organisation_id = :organisationId AND session_hash = :hash',
    of,
  ).rows(db)
}

/**
 * Ends all sessions of a member, its unopened portal links, and its push subscriptions but those that an
 * API key made without a session. Returns how many sessions there were. The caller has locked the member's row, so that
 * no link is being opened.
 */
export async function deleteSessionsOf(db: Db, organisationId: string, memberId: string): Promise<number> {
  const ended = await sql(
    `WITH links AS (
       DELETE FROM portal_link WHERE organisation_id = :organisationId AND member_id = :memberId
     ), subscriptions AS (
       DELETE FROM push_subscription
        WHERE organisation_id = :organisationId AND member_id = :memberId
          AND (session_hash IS NOT NULL OR api_key_id IS NULL)
     )
     DELETE FROM session
      WHERE (organisation_id = :organisationId AND member_id = :memberId)
         OR api_key_id = ANY(ARRAY(
              SELECT id FROM api_key WHERE organisation_id = :organisationId AND member_id = :memberId))
     RETURNING hash`,
    { organisationId, memberId },
  ).rows(db)
  return ended.length
}

/** How a signed-in member is greeted. */
export type Identity = { organisationName: string; timeZone: string; memberName: string }

export async function findIdentity(
  db: Db,
  organisationId: string,
  memberId: string,
): Promise<Identity | null> {
  const member = await db.getRepository(Member).findOneBy({ organisationId, id: memberId })
  const organisation = await db.getRepository(Organisation).findOneBy({ id: organisationId })
  if (member === null || organisation === null) return null
  return { organisationName: organisation.name, timeZone: organisation.timeZone, memberName: member.name }
}

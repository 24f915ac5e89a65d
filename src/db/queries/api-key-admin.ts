import { firstRow, rows, type Db } from '../db.ts'

/** A key as it is listed: nothing of its value but the public prefix. */
export type ApiKeyRow = {
  id: string
  memberId: string
  name: string
  prefix: string
  createdAt: Date
  lastUsedAt: Date | null
  expiresAt: Date | null
  revokedAt: Date | null
}

/** One key of an organisation: by its id, or the one that its member knows by this name. */
export type ApiKeyChoice = { id: string } | { memberId: string; name: string }

const COLUMNS = `id, member_id AS "memberId", name, prefix, created_at AS "createdAt",
  last_used_at AS "lastUsedAt", expires_at AS "expiresAt", revoked_at AS "revokedAt"`

/** Which of the two does not exist; null when both do. Without a member only the organisation is asked for. */
export async function findMissing(
  db: Db,
  organisationId: string,
  memberId: string | null,
): Promise<'organisation' | 'member' | null> {
  const found = await firstRow<{ member: boolean }>(
    db,
    `SELECT $2::text IS NULL OR EXISTS (SELECT 1 FROM member WHERE organisation_id = $1 AND id = $2) AS member
       FROM organisation WHERE id = $1`,
    [organisationId, memberId],
  )
  if (found === null) return 'organisation'
  return found.member ? null : 'member'
}

/** False, with nothing written, when the member has a key of that name which is not revoked. */
export async function insertApiKey(
  db: Db,
  key: {
    id: string
    organisationId: string
    memberId: string
    name: string
    prefix: string
    hash: Buffer
    expiresAt: Date | null
  },
): Promise<boolean> {
  const { id, organisationId, memberId, name, prefix, hash, expiresAt } = key
  const inserted = await firstRow(
    db,
    `INSERT INTO api_key (id, organisation_id, member_id, name, prefix, hash, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (organisation_id, member_id, name) WHERE revoked_at IS NULL DO NOTHING RETURNING id`,
    [id, organisationId, memberId, name, prefix, hash, expiresAt],
  )
  return inserted !== null
}

/** The organisation's keys, or one member's, the revoked ones among them; by member, oldest first. */
export async function listApiKeys(
  db: Db,
  organisationId: string,
  memberId: string | null,
): Promise<ApiKeyRow[]> {
  return rows(
    db,
    `SELECT ${COLUMNS} FROM api_key WHERE organisation_id = $1 AND ($2::text IS NULL OR member_id = $2)
      ORDER BY member_id, created_at, id`,
    [organisationId, memberId],
  )
}

/**
 * Revokes the key. One that was revoked before keeps its time and comes back with `before`; null when there is none.
 * Of several that had the name it is the one in force, else the one revoked last.
 */
export async function revokeApiKey(
  db: Db,
  organisationId: string,
  choice: ApiKeyChoice,
): Promise<{ key: ApiKeyRow; before: boolean } | null> {
  const [condition, values] =
    'id' in choice
      ? ['id = $2', [choice.id]]
      : ['member_id = $2 AND name = $3', [choice.memberId, choice.name]]
  const chosen = `organisation_id = $1 AND ${condition}`
  const parameters = [organisationId, ...values]
  const revoked = await firstRow<ApiKeyRow>(
    db,
    `UPDATE api_key SET revoked_at = now() WHERE ${chosen} AND revoked_at IS NULL RETURNING ${COLUMNS}`,
    parameters,
  )
  if (revoked !== null) return { key: revoked, before: false }
  const earlier = await firstRow<ApiKeyRow>(
    db,
    `SELECT ${COLUMNS} FROM api_key WHERE ${chosen} ORDER BY revoked_at DESC LIMIT 1`,
    parameters,
  )
  return earlier === null ? null : { key: earlier, before: true }
}

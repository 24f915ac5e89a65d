import { firstRow, rows, type Db } from '../db.ts'

/** What a row was before a statement; null where the statement created it. */
type Before<T> = { before: T | null }

export type OrganisationInput = {
  id: string
  name: string
  email: string
  supportEmail: string | null
  timeZone: string
}

export type MemberInput = {
  id: string
  name: string
  email: string
  fullAccess: boolean
  pushEnabled: boolean
  permissions: string[]
}

export type ApiKeyInput = { id: string; name: string; prefix: string; hash: Buffer }

/** Creates the organisation or brings the existing one up to date; returns what it was before. */
export async function upsertOrganisation(
  db: Db,
  organisation: OrganisationInput,
): Promise<OrganisationInput | null> {
  const { id, name, email, supportEmail, timeZone } = organisation
  const written = await firstRow<Before<OrganisationInput>>(
    db,
    `INSERT INTO organisation (id, name, email, support_email, time_zone) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (id) DO UPDATE
       SET name = EXCLUDED.name, email = EXCLUDED.email, support_email = EXCLUDED.support_email,
           time_zone = EXCLUDED.time_zone
     RETURNING CASE WHEN old.id IS NOT NULL THEN jsonb_build_object('id', old.id, 'name', old.name,
       'email', old.email, 'supportEmail', old.support_email, 'timeZone', old.time_zone) END AS before`,
    [id, name, email, supportEmail, timeZone],
  )
  return written?.before ?? null
}

/** Locks the organisation's row until the transaction ends, against nobody but others that lock it. */
export async function lockOrganisation(db: Db, organisationId: string): Promise<void> {
  // Weaker than FOR UPDATE: whatever refers to the organisation, such as a new event, does not wait for it.
  await rows(db, `SELECT 1 FROM organisation WHERE id = $1 FOR NO KEY UPDATE`, [organisationId])
}

/** Creates the member or brings the existing one up to date; returns what it was before. */
export async function upsertMember(
  db: Db,
  organisationId: string,
  member: MemberInput,
): Promise<MemberInput | null> {
  const { id, name, email, fullAccess, pushEnabled, permissions } = member
  const written = await firstRow<Before<MemberInput>>(
    db,
    `INSERT INTO member (organisation_id, id, name, email, full_access, push_enabled, permissions)
     VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (organisation_id, id) DO UPDATE
       SET name = EXCLUDED.name, email = EXCLUDED.email, full_access = EXCLUDED.full_access,
           push_enabled = EXCLUDED.push_enabled, permissions = EXCLUDED.permissions
     RETURNING CASE WHEN old.id IS NOT NULL THEN jsonb_build_object('id', old.id, 'name', old.name,
       'email', old.email, 'fullAccess', old.full_access, 'pushEnabled', old.push_enabled,
       'permissions', old.permissions) END AS before`,
    [organisationId, id, name, email, fullAccess, pushEnabled, permissions],
  )
  return written?.before ?? null
}

/** True when the member has a key of that name, or had one that was revoked. */
export async function hasApiKey(
  db: Db,
  organisationId: string,
  memberId: string,
  name: string,
): Promise<boolean> {
  const found = await firstRow(
    db,
    `SELECT 1 FROM api_key WHERE organisation_id = $1 AND member_id = $2 AND name = $3`,
    [organisationId, memberId, name],
  )
  return found !== null
}

/** A key as it was written. `prefixBefore`: of the value that was replaced; null for a new key. */
export type WrittenApiKey = { id: string; prefixBefore: string | null }

/**
 * Creates the key, or gives the member's key of that name another value; returns null when nothing changed. A value that
 * was revoked is not brought back, and replaces nothing.
 */
export async function upsertApiKey(
  db: Db,
  organisationId: string,
  memberId: string,
  key: ApiKeyInput,
): Promise<WrittenApiKey | null> {
  return firstRow<WrittenApiKey>(
    db,
    `INSERT INTO api_key (id, organisation_id, member_id, name, prefix, hash)
     SELECT $1::uuid, $2::text, $3::text, $4::text, $5::text, $6::bytea
      WHERE NOT EXISTS (SELECT 1 FROM api_key
                         WHERE organisation_id = $2 AND member_id = $3 AND name = $4 AND hash = $6
                           AND revoked_at IS NOT NULL)
     ON CONFLICT (organisation_id, member_id, name) WHERE revoked_at IS NULL DO UPDATE
       SET prefix = EXCLUDED.prefix, hash = EXCLUDED.hash
     WHERE api_key.hash <> EXCLUDED.hash
     RETURNING new.id, old.prefix AS "prefixBefore"`,
    [key.id, organisationId, memberId, key.name, key.prefix, key.hash],
  )
}

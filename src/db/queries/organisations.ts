import { firstRow, rows, type Db } from '../db.ts'

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

/** Creates the organisation or brings the existing one up to date. */
export async function upsertOrganisation(db: Db, organisation: OrganisationInput): Promise<void> {
  const { id, name, email, supportEmail, timeZone } = organisation
  await rows(
    db,
    `INSERT INTO organisation (id, name, email, support_email, time_zone) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (id) DO UPDATE
       SET name = EXCLUDED.name, email = EXCLUDED.email, support_email = EXCLUDED.support_email,
           time_zone = EXCLUDED.time_zone`,
    [id, name, email, supportEmail, timeZone],
  )
}

/** Creates the member or brings the existing one up to date. */
export async function upsertMember(db: Db, organisationId: string, member: MemberInput): Promise<void> {
  const { id, name, email, fullAccess, pushEnabled, permissions } = member
  await rows(
    db,
    `INSERT INTO member (organisation_id, id, name, email, full_access, push_enabled, permissions)
     VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (organisation_id, id) DO UPDATE
       SET name = EXCLUDED.name, email = EXCLUDED.email, full_access = EXCLUDED.full_access,
           push_enabled = EXCLUDED.push_enabled, permissions = EXCLUDED.permissions`,
    [organisationId, id, name, email, fullAccess, pushEnabled, permissions],
  )
}

/** True when the member already has a key of that name. */
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

/** Creates the key, or gives the member's key of that name another value; a revocation stays. */
export async function upsertApiKey(
  db: Db,
  organisationId: string,
  memberId: string,
  key: ApiKeyInput,
): Promise<void> {
  await rows(
    db,
    `INSERT INTO api_key (id, organisation_id, member_id, name, prefix, hash) VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (organisation_id, member_id, name) DO UPDATE
       SET prefix = EXCLUDED.prefix, hash = EXCLUDED.hash`,
    [key.id, organisationId, memberId, key.name, key.prefix, key.hash],
  )
}

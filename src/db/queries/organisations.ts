// Repositories, but for the upserts, which are hand-written: each returns what its row was before (a subquery of RETURNING reads the statement's
// snapshot), or writes only while nothing was revoked.
import { ApiKey, Member, Organisation, OrganisationErasure } from '../entities/organisation.ts'
import { In, MoreThan } from 'typeorm'
import { pageOf, sql, type Db, type Page } from '../connection/db.ts'

/** What a row was before a statement; null where the statement created it. */
type Before<T> = { before: T | null }

export type OrganisationInput = Pick<Organisation, keyof Organisation>
export type MemberInput = Omit<Member, 'organisationId'>
export type ApiKeyInput = Pick<ApiKey, 'id' | 'name' | 'prefix' | 'hash'>

/** Creates the organisation; false where it exists, also when another transaction creates it now, which this waits for. */
export async function insertOrganisation(
  db: Db,
  { id, name, email, supportEmail, timeZone }: OrganisationInput,
): Promise<boolean> {
  const written = await sql(
    `INSERT INTO organisation (id, name, email, support_email, time_zone)
     VALUES (:id, :name, :email, :supportEmail, :timeZone) ON CONFLICT (id) DO NOTHING RETURNING id`,
    { id, name, email, supportEmail, timeZone },
  ).first(db)
  return written !== null
}

/** Creates the organisation or brings the existing one up to date; returns what it was before. The caller has locked it. */
export async function upsertOrganisation(
  db: Db,
  { id, name, email, supportEmail, timeZone }: OrganisationInput,
): Promise<OrganisationInput | null> {
  const written = await sql(
    `INSERT INTO organisation (id, name, email, support_email, time_zone)
     VALUES (:id, :name, :email, :supportEmail, :timeZone)
     ON CONFLICT (id) DO UPDATE
       SET name = EXCLUDED.name, email = EXCLUDED.email, support_email = EXCLUDED.support_email,
           time_zone = EXCLUDED.time_zone
     RETURNING (SELECT jsonb_build_object('id', old.id, 'name', old.name, 'email', old.email,
       'supportEmail', old.support_email, 'timeZone', old.time_zone)
       FROM organisation old WHERE old.id = organisation.id) AS before`,
    { id, name, email, supportEmail, timeZone },
  ).first<Before<OrganisationInput>>(db)
  return written?.before ?? null
}

/** Locks the organisation's row until the transaction ends, only against others that lock it. */
export async function lockOrganisation(db: Db, organisationId: string): Promise<void> {
  // Weaker than FOR UPDATE: what refers to the organisation, such as a new event, does not wait for it.
  const lock = { mode: 'for_no_key_update' } as const
  await db.getRepository(Organisation).findOne({ select: { id: true }, where: { id: organisationId }, lock })
}

/** Creates the member or brings the existing one up to date; returns what it was before. */
export async function upsertMember(
  db: Db,
  organisationId: string,
  { id, name, email, fullAccess, pushEnabled, permissions }: MemberInput,
): Promise<MemberInput | null> {
  const written = await sql(
    `INSERT INTO member (organisation_id, id, name, email, full_access, push_enabled, permissions)
     VALUES (:organisationId, :id, :name, :email, :fullAccess, :pushEnabled, :permissions)
     ON CONFLICT (organisation_id, id) DO UPDATE
       SET name = EXCLUDED.name, email = EXCLUDED.email, full_access = EXCLUDED.full_access,
           push_enabled = EXCLUDED.push_enabled, permissions = EXCLUDED.permissions
     RETURNING (SELECT jsonb_build_object('id', old.id, 'name', old.name, 'email', old.email,
       'fullAccess', old.full_access, 'pushEnabled', old.push_enabled, 'permissions', old.permissions)
       FROM member old WHERE old.organisation_id = member.organisation_id AND old.id = member.id) AS before`,
    { organisationId, id, name, email, fullAccess, pushEnabled, permissions },
  ).first<Before<MemberInput>>(db)
  return written?.before ?? null
}

/** True when the member has a key of that name, or had one that was revoked. */
export function hasApiKey(db: Db, organisationId: string, memberId: string, name: string): Promise<boolean> {
  return db.getRepository(ApiKey).existsBy({ organisationId, memberId, name })
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
  { id, name, prefix, hash }: ApiKeyInput,
): Promise<WrittenApiKey | null> {
  return sql(
    `INSERT INTO api_key (id, organisation_id, member_id, name, prefix, hash)
     SELECT :id::uuid, :organisationId::text, :memberId::text, :name::text, :prefix::text, :hash::bytea
      WHERE NOT EXISTS (SELECT 1 FROM api_key
                         WHERE organisation_id = :organisationId AND member_id = :memberId AND name = :name
                           AND hash = :hash AND revoked_at IS NOT NULL)
     ON CONFLICT (organisation_id, member_id, name) WHERE revoked_at IS NULL DO UPDATE
       SET prefix = EXCLUDED.prefix, hash = EXCLUDED.hash
     WHERE api_key.hash <> EXCLUDED.hash
     RETURNING id, (SELECT old.prefix FROM api_key old WHERE old.id = api_key.id) AS "prefixBefore"`,
    { id, organisationId, memberId, name, prefix, hash },
  ).first(db)
}

/** An organisation as operators see it; `erasure` is null unless it is being erased. */
export type OrganisationRow = OrganisationInput & {
  erasure: Pick<OrganisationErasure, 'requestedAt' | 'erased'> | null
}

/** A page of a list by id; `after`: the last id of the page before. */
type PageAfter = { after: string | null; limit: number }

/** Returns the organisations by id. */
export async function listOrganisations(db: Db, { after, limit }: PageAfter): Promise<Page<OrganisationRow>> {
  const found = await db.getRepository(Organisation).find({
    where: after === null ? {} : { id: MoreThan(after) },
    order: { id: 'ASC' },
    take: limit + 1,
  })
  return pageOf(await withErasures(db, found), limit)
}

export async function findOrganisation(db: Db, id: string): Promise<OrganisationRow | null> {
  const [found] = await withErasures(db, await db.getRepository(Organisation).findBy({ id }))
  return found ?? null
}

async function withErasures(db: Db, organisations: Organisation[]): Promise<OrganisationRow[]> {
  const ids = organisations.map(({ id }) => id)
  const erasures = await db.getRepository(OrganisationErasure).findBy({ organisationId: In(ids) })
  return organisations.map(({ id, name, email, supportEmail, timeZone }) => {
    const erasure = erasures.find(({ organisationId }) => organisationId === id) ?? null
    return { id, name, email, supportEmail, timeZone, erasure }
  })
}

/** Returns the members of an organisation by id. */
export async function listMembers(
  db: Db,
  organisationId: string,
  { after, limit }: PageAfter,
): Promise<Page<Member>> {
  const found = await db.getRepository(Member).find({
    where: { organisationId, ...(after === null ? {} : { id: MoreThan(after) }) },
    order: { id: 'ASC' },
    take: limit + 1,
  })
  return pageOf(found, limit)
}

export function findMember(db: Db, organisationId: string, id: string): Promise<Member | null> {
  return db.getRepository(Member).findOneBy({ organisationId, id })
}

/** Deletes a member with its keys, sessions and push subscriptions. False when there is none. */
export async function deleteMember(db: Db, organisationId: string, id: string): Promise<boolean> {
  const { affected } = await db.getRepository(Member).delete({ organisationId, id })
  return affected === 1
}

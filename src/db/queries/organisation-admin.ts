import { In, MoreThan } from 'typeorm'
import { type Db, pageOf, type Page } from '../connection/db.ts'
import { Member, Organisation, OrganisationErasure } from '../entities/organisation.ts'

/** An organisation as operators see it; `erasure` is null unless it is being erased. */
export type OrganisationRow = Pick<Organisation, 'id' | 'name' | 'email' | 'supportEmail' | 'timeZone'> & {
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

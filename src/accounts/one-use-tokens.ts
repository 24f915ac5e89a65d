import type { DataSource, EntityManager } from 'typeorm'
import { hashCredential, newToken } from '../credentials.ts'
import { recordAudit, type AuditActor } from '../db/queries/audit.ts'
import {
  insertPortalLink,
  takePortalLink,
  insertStreamTicket,
  takeStreamTicket,
} from '../db/queries/one-use-tokens.ts'
import { findIdentity } from '../db/queries/sessions.ts'
import { notFound, ProblemError, type NamedMember, unauthenticated } from '../problem-error.ts'
import type { KnownCredentials } from './caller-lookup.ts'
import { findFormerSession, isSameMember, openMemberSession } from './sessions.ts'
import type { KeyCaller } from '../domain/actor.ts'

/** Long enough to open a stream, too short to be of use to a reader of a log. */
const TICKET_TTL_SECONDS = 30

/**
 * Issues a ticket that opens one stream with the rights of the caller's key. The ticket is returned this once: only its
 * hash is stored. Throws the 401 of an invalid key when the key's value was replaced meanwhile.
 */
export async function issueTicket(
  { dataSource, known }: { dataSource: DataSource; known: Pick<KnownCredentials, 'add'> },
  { organisationId, apiKeyId, keyHash }: KeyCaller,
): Promise<{ ticket: string; expiresAt: Date }> {
  const ticket = newToken()
  const hash = hashCredential(ticket)
  const expiresAt = await insertStreamTicket(dataSource, {
    hash,
    organisationId,
    apiKeyId,
    keyHash,
    seconds: TICKET_TTL_SECONDS,
  })
  if (expiresAt === null) throw unauthenticated()
  known.add(hash)
  return { ticket, expiresAt }
}

/** Uses a ticket up and returns the caller it was issued to. Throws 401 where it is not valid. */
export async function redeemTicket(dataSource: DataSource, ticket: string): Promise<KeyCaller> {
  const caller = await takeStreamTicket(dataSource, hashCredential(ticket))
  if (caller === null)
    throw new ProblemError('unauthenticated', {
      detail: 'The ticket is unknown, used or expired. Request another one.',
    })
  return caller
}

/**
 * Creates a link that opens the developer area once, as a member of the actor's organisation, within `seconds`.
 * `path` is one that `developerAddress` accepts. The token is returned this once: only its hash is stored.
 * Throws 404 where there is no such member.
 */
export async function createPortalLink(
  { dataSource, known }: { dataSource: DataSource; known: Pick<KnownCredentials, 'add'> },
  actor: AuditActor,
  { memberId, path, seconds }: { memberId: string; path: string; seconds: number },
): Promise<{ token: string; expiresAt: Date }> {
  const { organisationId } = actor
  const token = newToken()
  const hash = hashCredential(token)
  const expiresAt = await dataSource.transaction(async (manager) => {
    const end = await insertPortalLink(manager, { hash, organisationId, memberId, path, seconds })
    if (end === null) throw notFound('member')
    const details = { memberId, path, expiresAt: end.toISOString() }
    await recordAudit(manager, actor, { action: 'portal_link.created', details })
    return end
  })
  known.add(hash)
  return { token, expiresAt }
}

/** The session that the browser has, by the hash of its token; whether the user has confirmed that it is to end. */
type Present = { session: Buffer | null; isConfirmed: boolean }

/**
 * Uses a link up: opens a session of its member in the place of the browser's present one, and returns it with the
 * address in the developer area that the link leads to. `origin`: of the request. Throws the same 401 for a link that is
 * unknown, used or expired; 409, with the link as it was, where another member is signed in and has not confirmed.
 */
export async function redeemPortalLink(
  { dataSource }: { dataSource: DataSource },
  token: string,
  origin: Pick<AuditActor, 'address' | 'requestId'>,
  present: Present,
): Promise<{ session: { token: string; expiresAt: Date }; address: string }> {
  return dataSource.transaction(async (manager) => {
    const link = await takePortalLink(manager, hashCredential(token))
    if (link === null) throw invalidPortalLink()
    const { path, ...member } = link
    const former = await findFormerSession(manager, present.session)
    if (former !== null && !isSameMember(former.caller, member) && !present.isConfirmed)
      throw await anotherMember(manager, former.caller, member)
    const session = await openMemberSession(manager, { ...member, ...origin }, former)
    return { session, address: developerAddress(path) ?? '/developer' }
  })
}

type MemberId = { organisationId: string; memberId: string }

async function anotherMember(
  manager: EntityManager,
  signedIn: MemberId,
  requested: MemberId,
): Promise<ProblemError> {
  return new ProblemError('another_member_signed_in', {
    detail: 'This browser is signed in as another member. The link is still valid.',
    signedIn: await namesOf(manager, signedIn),
    requested: await namesOf(manager, requested),
  })
}

async function namesOf(manager: EntityManager, { organisationId, memberId }: MemberId): Promise<NamedMember> {
  const identity = await findIdentity(manager, organisationId, memberId)
  if (identity === null) throw notFound('member')
  return {
    organisation: { id: organisationId, name: identity.organisationName },
    member: { id: memberId, name: identity.memberName },
  }
}

function invalidPortalLink(): ProblemError {
  return new ProblemError('invalid_portal_link', {
    detail: 'This link has expired or was already used. Each link opens the developer area once.',
  })
}

const ID = '[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}'

/** `/`, `/webhooks`, `/webhooks/{id}` and `/webhooks/{id}/deliveries/{id}`; nothing else is a page of the area. */
export const PORTAL_PATH_PATTERN = `^/(?:webhooks(?:/(${ID})(?:/deliveries/(${ID}))?)?)?$`
const PORTAL_PATH = new RegExp(PORTAL_PATH_PATTERN)

/**
 * Returns the address of a page of the developer area by its path within it, such as `/webhooks/{id}`; null for every
 * other text, so that no path leads out of the area.
 */
export function developerAddress(path: string): string | null {
  const match = PORTAL_PATH.exec(path)
  if (match === null) return null
  const [webhook, delivery] = match.slice(1).map((id: string | undefined) => id?.toLowerCase())
  if (webhook === undefined) return '/developer'
  const parameters = new URLSearchParams(delivery === undefined ? { webhook } : { webhook, delivery })
  return `/developer?${parameters.toString()}`
}

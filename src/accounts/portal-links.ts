import type { DataSource } from 'typeorm'
import { hashCredential, newToken } from '../credentials.ts'
import { recordAudit, type AuditActor } from '../db/queries/audit.ts'
import { insertPortalLink, takePortalLink } from '../db/queries/portal-links.ts'
import { developerAddress } from '../domain/portal-path.ts'
import { notFound, ProblemError } from '../errors.ts'
import type { KnownCredentials } from './known-credentials.ts'
import { openMemberSession } from './sessions.ts'

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

/**
 * Uses a link up: opens a session of its member, and returns it with the address in the developer area that the link
 * leads to. `origin`: of the request. Throws the same 401 for a link that is unknown, used or expired.
 */
export async function redeemPortalLink(
  { dataSource }: { dataSource: DataSource },
  token: string,
  origin: Pick<AuditActor, 'address' | 'requestId'>,
): Promise<{ session: { token: string; expiresAt: Date }; address: string }> {
  return dataSource.transaction(async (manager) => {
    const link = await takePortalLink(manager, hashCredential(token))
    if (link === null) throw invalidPortalLink()
    const { organisationId, memberId, path } = link
    const session = await openMemberSession(manager, { organisationId, memberId, ...origin })
    return { session, address: developerAddress(path) ?? '/developer' }
  })
}

function invalidPortalLink(): ProblemError {
  return new ProblemError('invalid_portal_link', {
    detail: 'This link has expired or was already used. Each link opens the developer area once.',
  })
}

import { randomBytes } from 'node:crypto'
import { deleteSession, findIdentity, hashSessionToken, insertSession } from '../db/queries/sessions.ts'
import { FULL_ACCESS, missingPermissions } from '../domain/permissions.ts'
import { RETRY_WAITS_MS } from '../domain/retry-schedule.ts'
import { ProblemError, unauthenticated } from '../errors.ts'
import type { ApiDependencies } from './api.ts'
import { audit } from './audit.ts'
import type { RouteRequest } from './route.ts'
import { forgetSession, keepSession } from './session-cookie.ts'

/** Signs a browser in as the calling key; returns what it is to keep. */
export async function openSession(
  { dataSource }: ApiDependencies,
  request: RouteRequest,
): Promise<{ setCookie: string; expiresAt: Date }> {
  const { caller, cookie } = request
  if (cookie === null) throw needsTls()
  const token = randomBytes(32).toString('base64url')
  const hash = hashSessionToken(token)
  const expiresAt = await dataSource.transaction(async (manager) => {
    const { organisationId, apiKeyId, keyHash } = caller
    const until = await insertSession(manager, organisationId, { hash, apiKeyId, keyHash })
    if (until === null) throw unauthenticated()
    await audit(manager, request, { action: 'session.opened' })
    return until
  })
  return { setCookie: keepSession(cookie, token, expiresAt), expiresAt }
}

/** Ends the session that the request came with, and has the browser forget it; harmless where there is none. */
export async function endSession(
  { dataSource }: ApiDependencies,
  request: RouteRequest,
): Promise<Record<string, string>> {
  const { caller, cookie, session } = request
  if (session !== null) {
    await dataSource.transaction(async (manager) => {
      await deleteSession(manager, caller.organisationId, session.hash)
      await audit(manager, request, { action: 'session.ended' })
    })
  }
  return cookie === null ? {} : { 'set-cookie': forgetSession(cookie) }
}

/** Who the caller is and may do, and what a page needs to know to show deliveries. */
export async function describeCaller(
  { dataSource, temporalUi }: ApiDependencies,
  { caller }: RouteRequest,
  expiresAt: Date | null,
) {
  const { organisationId, memberId, fullAccess, permissions } = caller
  const identity = await findIdentity(dataSource, organisationId, memberId)
  if (identity === null) throw new Error('the member of a checked request does not exist')
  const { organisationName, timeZone, memberName } = identity
  return {
    organisation: { id: organisationId, name: organisationName, timeZone },
    member: { id: memberId, name: memberName, fullAccess, permissions: [...permissions] },
    expiresAt: expiresAt?.toISOString() ?? null,
    retryWaitsMs: [...RETRY_WAITS_MS],
    // Whoever may do everything in the organisation is the nearest to an operator that a member can be.
    temporalUi: missingPermissions(caller, [FULL_ACCESS]).length === 0 ? temporalUi : null,
  }
}

function needsTls(): ProblemError {
  return new ProblemError('needs_tls', {
    detail:
      'Signing in works over https and on this machine itself. Behind a proxy that speaks TLS, the operator sets POSTHORN_PUBLIC_URL, or TRUSTED_PROXIES with X-Forwarded-Proto.',
  })
}

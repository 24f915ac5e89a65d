import type { Actor } from '../../domain/actor.ts'
import type { Identity } from '../../db/queries/sessions.ts'
import { FULL_ACCESS, missingPermissions } from '../../domain/permissions.ts'
import { RETRY_WAITS_MS } from '../../domain/retry-schedule.ts'
import type { ApiDependencies } from '../api.ts'

/**
 * Presents the caller with what a page needs to show deliveries. The address of Temporal's UI is shown with full
 * access only: such a member is the nearest to an operator. `expiresAt` null: authenticated by a key.
 */
export function presentSession(
  actor: Actor,
  { organisationName, timeZone, memberName }: Identity,
  expiresAt: Date | null,
  temporalUi: ApiDependencies['temporalUi'],
) {
  const { organisationId, memberId, fullAccess, permissions } = actor
  return {
    organisation: { id: organisationId, name: organisationName, timeZone },
    member: { id: memberId, name: memberName, fullAccess, permissions },
    expiresAt: expiresAt?.toISOString() ?? null,
    retryWaitsMs: RETRY_WAITS_MS,
    temporalUi: missingPermissions(actor, [FULL_ACCESS]).length === 0 ? temporalUi : null,
  }
}

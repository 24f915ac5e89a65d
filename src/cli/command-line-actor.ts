import type { AuditActor } from '../db/queries/audit.ts'

/**
 * The actor at the command line: the holder of the database's address, who has no member. `actor` distinguishes the
 * entries of one command from those of the others.
 */
export function commandLineActor(organisationId: string, actor?: string): AuditActor {
  const withoutMember = { memberId: null, apiKeyId: null, address: null, requestId: null }
  return { organisationId, ...withoutMember, ...(actor === undefined ? {} : { actor }) }
}

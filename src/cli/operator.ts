import type { AuditActor } from '../db/queries/audit.ts'

/** The actor at the command line: whoever has the database's address; the trail cannot know more. */
export function operatorOf(organisationId: string): AuditActor {
  return { organisationId, memberId: null, apiKeyId: null, address: null, requestId: null }
}

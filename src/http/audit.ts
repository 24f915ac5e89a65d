import type { Db } from '../db/db.ts'
import { recordAudit, type AuditEvent } from '../db/queries/audit.ts'
import type { Actor } from './route.ts'

/** Notes in the audit trail what a request does; `db` is the transaction that does it. */
export function audit(db: Db, { caller, origin }: Actor, event: AuditEvent): Promise<void> {
  const { organisationId, memberId, apiKeyId } = caller
  return recordAudit(db, { organisationId, memberId, apiKeyId, ...origin }, event)
}

/** A URL as the trail keeps it: what customers put into a query may be a secret. */
export function urlForAudit(url: string): string {
  const { origin, pathname, search } = new URL(url)
  return `${origin}${pathname}${search === '' ? '' : '?…'}`
}

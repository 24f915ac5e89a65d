import type { Db } from '../db/db.ts'
import { recordAudit, type AuditEvent } from '../db/queries/audit.ts'
import { shortenUrl } from '../domain/webhook-name.ts'
import type { Actor } from './route.ts'

/** Notes in the audit trail what a request does; `db` is the transaction that does it. */
export function audit(db: Db, { caller, origin }: Actor, event: AuditEvent): Promise<void> {
  const { organisationId, memberId, apiKeyId } = caller
  return recordAudit(db, { organisationId, memberId, apiKeyId, ...origin }, event)
}

/** A URL as the trail keeps it: what customers put into a path or a query may be a credential. */
export function urlForAudit(url: string): string {
  return `${shortenUrl(url)}${new URL(url).search === '' ? '' : '?…'}`
}

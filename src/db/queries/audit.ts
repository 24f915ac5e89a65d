// Hand-written: a search ends after a bounded number of rows.
import type { AuditAction } from '../../domain/audit-action.ts'
import { sql, type Db } from '../connection/db.ts'
import { AuditEntry } from '../entities/organisation.ts'
import { searchedPage, type SearchedPage, type SearchedRow } from './delivery-list.ts'
import { MAX_SCANNED } from './delivery-selection.ts'

/** Who acts, and from where; an operator at the command line has neither member nor key. */
export type AuditActor = Pick<
  AuditEntry,
  'organisationId' | 'memberId' | 'apiKeyId' | 'address' | 'requestId'
> & {
  /** Who acts without being a member: `operator:NAME`, or a command. Becomes part of the details. */
  actor?: string
}

/** What was done. `details` contains no secret. */
export type AuditEvent = Pick<AuditEntry, 'action'> &
  Partial<Pick<AuditEntry, 'webhookId' | 'deliveryId' | 'details'>>

/** Adds an entry in the transaction of the act, so that neither is committed without the other. */
export async function recordAudit(db: Db, actor: AuditActor, event: AuditEvent): Promise<void> {
  const { organisationId, memberId, apiKeyId, address, requestId } = actor
  const { action, webhookId = null, deliveryId = null, details = {} } = event
  await db.getRepository(AuditEntry).insert({
    id: () => 'uuidv7()',
    organisationId,
    memberId,
    apiKeyId,
    action,
    webhookId,
    deliveryId,
    details: { ...(actor.actor === undefined ? {} : { actor: actor.actor }), ...details } as object,
    address,
    requestId,
  })
}

/** What entries are selected by; null for all. */
type AuditFilter = { webhookId: string | null; memberId: string | null; action: AuditAction | null }

type AuditRow = Omit<AuditEntry, 'organisationId'>

/**
 * Returns an organisation's entries, newest first. The statement scans {@link MAX_SCANNED} rows at most. The
 * organisation is named as a list and in the order, so that PostgreSQL does not walk the entries of all organisations.
 */
export async function listAudit(
  db: Db,
  organisationId: string,
  { limit, ...filter }: AuditFilter & { after: string | null; limit: number },
): Promise<SearchedPage<AuditRow>> {
  const found = await sql(
    `WITH scanned AS MATERIALIZED (
       SELECT * FROM audit_entry
        WHERE organisation_id = ANY (ARRAY[:organisationId::text]) AND (:after::uuid IS NULL OR id < :after)
        ORDER BY organisation_id DESC, id DESC LIMIT :maxScanned
     ), fitting AS MATERIALIZED (
       SELECT id, at, member_id AS "memberId", api_key_id AS "apiKeyId", action, webhook_id AS "webhookId",
              delivery_id AS "deliveryId", details, address, request_id AS "requestId" FROM scanned
        WHERE (:webhookId::uuid IS NULL OR webhook_id = :webhookId)
          AND (:memberId::text IS NULL OR member_id = :memberId) AND (:action::text IS NULL OR action = :action)
        ORDER BY organisation_id DESC, id DESC LIMIT :limit
     ), mark AS (
       SELECT id, at FROM scanned WHERE (SELECT count(*) FROM fitting) < :limit
        ORDER BY organisation_id DESC, id DESC OFFSET :maxScanned - 1 LIMIT 1
     )
     SELECT fitting.*, mark.id AS "markId", mark.at AS "markAt"
       FROM (VALUES (true)) one LEFT JOIN mark ON true LEFT JOIN fitting ON true ORDER BY fitting.id DESC`,
    { organisationId, ...filter, limit: limit + 1, maxScanned: MAX_SCANNED },
  ).rows<SearchedRow<AuditRow>>(db)
  return searchedPage(found, limit)
}

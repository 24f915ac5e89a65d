import type { AuditAction } from '../../domain/audit-action.ts'
import { rows, type Db } from '../db.ts'
import { pageOf, type Page } from '../page.ts'

/** Who acts, and from where; an operator at the command line is nobody in particular. */
export type AuditActor = {
  organisationId: string
  memberId: string | null
  apiKeyId: string | null
  address: string | null
  requestId: string | null
}

/** What was done. `details` holds no secret. */
export type AuditEvent = {
  action: AuditAction
  webhookId?: string | null
  deliveryId?: string | null
  details?: Record<string, unknown>
}

/** Adds an entry; in the transaction of what it tells of, so that there is neither without the other. */
export async function recordAudit(db: Db, actor: AuditActor, event: AuditEvent): Promise<void> {
  await rows(
    db,
    `INSERT INTO audit_entry (id, organisation_id, member_id, api_key_id, action, webhook_id, delivery_id, details,
            address, request_id)
     VALUES (uuidv7(), $1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [
      actor.organisationId,
      actor.memberId,
      actor.apiKeyId,
      event.action,
      event.webhookId ?? null,
      event.deliveryId ?? null,
      JSON.stringify(event.details ?? {}),
      actor.address,
      actor.requestId,
    ],
  )
}

/** An entry as the API shows it. */
export type AuditRow = {
  id: string
  at: Date
  memberId: string | null
  apiKeyId: string | null
  action: AuditAction
  webhookId: string | null
  deliveryId: string | null
  details: Record<string, unknown>
  address: string | null
  requestId: string | null
}

/** An organisation's entries, newest first. */
export async function listAudit(
  db: Db,
  organisationId: string,
  page: { webhookId: string | null; after: string | null; limit: number },
): Promise<Page<AuditRow>> {
  const found = await rows<AuditRow>(
    db,
    `SELECT id, at, member_id AS "memberId", api_key_id AS "apiKeyId", action, webhook_id AS "webhookId",
            delivery_id AS "deliveryId", details, address, request_id AS "requestId"
       FROM audit_entry
      WHERE organisation_id = $1 AND ($2::uuid IS NULL OR webhook_id = $2) AND ($3::uuid IS NULL OR id < $3)
      ORDER BY id DESC LIMIT $4`,
    [organisationId, page.webhookId, page.after, page.limit + 1],
  )
  return pageOf(found, page.limit)
}

import { LessThan } from 'typeorm'
import type { AuditAction } from '../../domain/audit-action.ts'
import { type Db, pageOf, type Page } from '../connection/db.ts'
import { AuditEntry } from '../entities/organisation.ts'

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

/** Returns an organisation's entries, newest first. */
export async function listAudit(
  db: Db,
  organisationId: string,
  { after, limit, ...filter }: AuditFilter & { after: string | null; limit: number },
): Promise<Page<AuditEntry>> {
  const found = await db.getRepository(AuditEntry).find({
    where: {
      organisationId,
      ...Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== null)),
      ...(after === null ? {} : { id: LessThan(after) }),
    },
    order: { id: 'DESC' },
    take: limit + 1,
  })
  return pageOf(found, limit)
}

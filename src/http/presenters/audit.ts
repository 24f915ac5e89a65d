import type { AuditRow } from '../../db/queries/audit.ts'

export function presentAuditEntry(entry: AuditRow) {
  const { id, at, memberId, apiKeyId, action, webhookId, deliveryId, details, address, requestId } = entry
  return {
    id,
    at: at.toISOString(),
    memberId,
    apiKeyId,
    action,
    webhookId,
    deliveryId,
    details,
    address,
    requestId,
  }
}

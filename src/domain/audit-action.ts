/** What the audit trail knows of: every management action, and every look at a secret. */
export const AUDIT_ACTIONS = [
  'webhook.created',
  'webhook.updated',
  'webhook.deleted',
  'webhook.secret_read',
  'webhook.tested',
  'delivery.retried',
  'delivery.discarded',
  'deliveries.discarded',
  'deliveries.retried',
  'push_subscription.saved',
  'push_subscription.removed',
  'session.opened',
  'session.ended',
  'api_key.created',
  'api_key.revoked',
] as const

export type AuditAction = (typeof AUDIT_ACTIONS)[number]

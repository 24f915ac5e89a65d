/** What the audit trail records: every management action, every look at a secret, and every change by `posthorn seed`. */
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
  'api_key.replaced',
  'api_key.revoked',
  'organisation.created',
  'organisation.updated',
  'member.created',
  'member.updated',
] as const

export type AuditAction = (typeof AUDIT_ACTIONS)[number]

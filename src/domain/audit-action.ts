/**
 * What the audit trail records: every management action, every read of a secret, every change by `posthorn seed`, and every
 * change over the operator API.
 */
export const AUDIT_ACTIONS = [
  'webhook.created',
  'webhook.updated',
  'webhook.deleted',
  'webhook.held',
  'webhook.released',
  'webhook.secret_read',
  'webhook.tested',
  'delivery.retried',
  'delivery.request_read',
  'delivery.discarded',
  'deliveries.discarded',
  'deliveries.retried',
  'event.payload_erased',
  'events.replayed',
  'replay.cancelled',
  'push_subscription.saved',
  'push_subscription.removed',
  'session.opened',
  'session.ended',
  'sessions.ended',
  'portal_link.created',
  'api_key.created',
  'api_key.replaced',
  'api_key.revoked',
  'organisation.created',
  'organisation.updated',
  'organisation.erasure_requested',
  'member.created',
  'member.updated',
  'member.deleted',
] as const

export type AuditAction = (typeof AUDIT_ACTIONS)[number]

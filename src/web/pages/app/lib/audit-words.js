/** @import { AuditEntry } from '../types.d.ts' */

/** @type {Record<AuditEntry['action'], string>} */
const WORDS = {
  'webhook.created': 'Created a webhook',
  'webhook.updated': 'Changed a webhook',
  'webhook.deleted': 'Deleted a webhook',
  'webhook.secret_read': 'Read a signing secret',
  'webhook.tested': 'Sent a test event',
  'delivery.retried': 'Retried a delivery',
  'delivery.request_read': 'Read a signed request',
  'delivery.discarded': 'Discarded a delivery',
  'deliveries.discarded': 'Discarded deliveries',
  'deliveries.retried': 'Retried deliveries',
  'push_subscription.saved': 'Switched push messages on in a browser',
  'push_subscription.removed': 'Switched push messages off in a browser',
  'session.opened': 'Signed in',
  'session.ended': 'Signed out',
  'sessions.ended': 'Ended all sessions of a member',
  'portal_link.created': 'Created a portal link',
  'api_key.created': 'Created an API key',
  'api_key.replaced': 'Replaced an API key',
  'api_key.revoked': 'Revoked an API key',
  'organisation.created': 'Created the organisation',
  'organisation.updated': 'Changed the organisation',
  'organisation.erasure_requested': 'Requested the erasure of the organisation',
  'member.created': 'Created a member',
  'member.updated': 'Changed a member',
  'member.deleted': 'Deleted a member',
}

/**
 * What was done, in words; an action that is newer than this page by its name.
 * @param {AuditEntry['action']} action
 * @returns {string}
 */
export function actionInWords(action) {
  return /** @type {Record<string, string>} */ (WORDS)[action] ?? action
}

/**
 * Its details on one line: `mode force, total 12`.
 * @param {AuditEntry['details']} details
 * @returns {string}
 */
export function detailsInWords(details) {
  return Object.entries(details)
    .filter(([name]) => name !== 'actor')
    .map(([name, value]) => `${name} ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ')
}

/** @import { AuditEntry } from '../types.d.ts' */

/** @type {Record<AuditEntry['action'], string>} */
const WORDS = {
  'webhook.created': 'Created a webhook',
  'webhook.updated': 'Changed a webhook',
  'webhook.deleted': 'Deleted a webhook',
  'webhook.held': 'Put a webhook on hold',
  'webhook.released': 'Ended the hold on a webhook',
  'webhook.secret_read': 'Read a signing secret',
  'webhook.tested': 'Sent a test event',
  'delivery.retried': 'Retried a delivery',
  'delivery.request_read': 'Read a signed request',
  'delivery.discarded': 'Discarded a delivery',
  'deliveries.discarded': 'Discarded deliveries',
  'deliveries.retried': 'Retried deliveries',
  'event.payload_erased': 'Erased the payload of an event',
  'events.replayed': 'Sent past events again',
  'replay.cancelled': 'Cancelled a replay',
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

/** What pages call fields of a webhook. @type {Readonly<Record<string, string>>} */
const FIELDS = { url: 'URL', description: 'name', subscribedEventKeys: 'event keys' }

/** Every action with its words. */
export const ACTIONS = Object.entries(WORDS)

/** @typedef {Record<string, unknown>} Fields */

/**
 * Its details on one line: `mode force, total 12`; of a change what differs: `event keys + invoice:paid − *`.
 * @param {AuditEntry['details']} details
 * @returns {string}
 */
export function detailsInWords(details) {
  const { from, to, before, after, urlChanged, ...rest } = details
  const others = Object.fromEntries(Object.entries(rest).filter(([name]) => name !== 'actor'))
  const [old, now] = [from ?? before, to ?? after]
  const fields = /** @type {Fields} */ (now ?? {})
  const changes =
    old === undefined || old === null
      ? entriesInWords(fields)
      : changesInWords(/** @type {Fields} */ (old), fields)
  // Of long URLs only the beginning is recorded, which may be the same.
  if (urlChanged === true && !changes.some((words) => words.startsWith(`${FIELDS['url']} `)))
    changes.push(`${FIELDS['url']}`)
  return [...entriesInWords(others), ...changes].join(', ')
}

/** @param {Fields} fields */
function entriesInWords(fields) {
  return Object.entries(fields).map(([name, value]) => `${FIELDS[name] ?? name} ${valueInWords(value)}`)
}

/**
 * @param {Fields} old
 * @param {Fields} now
 */
function changesInWords(old, now) {
  return Object.entries(now)
    .filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(old[name]))
    .map(([name, value]) => `${FIELDS[name] ?? name} ${changeInWords(old[name], value)}`)
}

/**
 * @param {unknown} old
 * @param {unknown} now
 */
function changeInWords(old, now) {
  if (!Array.isArray(old) || !Array.isArray(now)) return `${valueInWords(old)} → ${valueInWords(now)}`
  /** @type {(sign: string, some: unknown[], others: unknown[]) => string[]} */
  const only = (sign, some, others) =>
    some.filter((item) => !others.includes(item)).map((item) => `${sign} ${valueInWords(item)}`)
  return [...only('+', now, old), ...only('−', old, now)].join(' ')
}

/** @param {unknown} value */
function valueInWords(value) {
  if (value === '') return '“”'
  return typeof value === 'string' ? value : JSON.stringify(value)
}

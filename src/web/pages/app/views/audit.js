import { html, nothing } from '../lib/html.js'
import { deliveryLink, placeLink, webhookLink } from '../lib/links.js'
import { createListing } from '../lib/listing.js'
import { poll } from '../lib/poll.js'
import { nameOf } from '../parts/address.js'
import { selectField } from '../parts/filter-fields.js'
import { renderHeading, renderListing, renderTable } from '../parts/listing.js'

/** @import { App, AuditEntry, View } from '../types.d.ts' */

const PAGE_SIZE = 50

const EVERY_MS = 15_000

/**
 * Who did what, newest first, in pages; of one webhook where the address names one.
 * @param {App} app
 * @returns {View}
 */
export function createAuditView(app) {
  const names = /** @type {const} */ (['webhookId', 'memberId', 'action'])
  /** @param {Record<string, string>} query */
  const load = async (query) => {
    const [page] = await Promise.all([app.api.audit(query), nameWebhooks(app)])
    return page
  }
  const listing = createListing(app, names, load, PAGE_SIZE)
  const polling = poll(app, listing.refresh, EVERY_MS)

  return {
    title: 'Audit',
    stop: polling.stop,
    render() {
      const { filter, query, rows, change } = listing
      return html`${renderHeading(
        'Audit',
        filter.webhookId === ''
          ? 'Every management action and every access to a secret, newest first.'
          : html`Of ${webhookName(app, filter.webhookId)} only. <a href=${placeLink('audit')}>Show all</a>`,
      )}
      ${renderFilter(app, filter, rows ?? [], change)}
      ${renderListing(app, listing, {
        what: 'entries',
        none: Object.keys(query).length > 0 ? 'No entries match the filter.' : 'No entries.',
        show: (entries) => table(app, entries),
      })}`
    },
  }
}

/**
 * Members are those of the entries that are shown: the pages know no others.
 * @param {App} app
 * @param {{ memberId: string, action: string }} filter
 * @param {readonly AuditEntry[]} entries
 * @param {(changes: { memberId?: string, action?: string }) => void} change
 */
function renderFilter({ session }, { memberId, action }, entries, change) {
  const found = [memberId, session.member.id, ...entries.map((entry) => entry.memberId ?? '')]
  const members = [...new Set(found.filter((id) => id !== ''))]
  const named = members.map((id) => [id, memberName(session, id)])
  const all = ['', 'All']
  return html`<div class="filter of-audit" role="search" aria-label="Filter entries">
    ${selectField('Member', memberId, [all, ...named], (value) => change({ memberId: value }))}
    ${selectField('Action', action, [all, ...ACTIONS], (value) => change({ action: value }))}
  </div>`
}

/**
 * @param {App['session']} session
 * @param {string} id
 */
function memberName({ member }, id) {
  return id === member.id ? `${member.name} (you)` : id
}

/** @param {App} app */
async function nameWebhooks(app) {
  app.webhooks ??= (await app.api.overview()).data
}

/**
 * @param {App} app
 * @param {string} id
 */
function webhookName({ webhooks }, id) {
  const webhook = webhooks?.find((candidate) => candidate.id === id)
  return webhook === undefined
    ? html`<span class="mono">…${id.slice(-6)}</span> <span class="faint">(deleted)</span>`
    : html`<a href=${webhookLink(id)}>${nameOf(webhook)}</a>`
}

/**
 * @param {App} app
 * @param {readonly AuditEntry[]} entries
 */
function table(app, entries) {
  return renderTable({
    caption: 'Audit trail',
    className: 'list audit',
    columns: [
      { head: 'Time', cell: ({ at }) => app.times.at(at) },
      {
        head: 'Who',
        cell: ({ memberId, details }) => who(app, memberId, details),
        tooltip: ({ address }) => (address === null ? '' : `from ${address}`),
      },
      { head: 'Action', className: 'action-cell', cell: ({ action }) => actionInWords(action) },
      {
        head: 'Webhook',
        cell: ({ webhookId, deliveryId }) =>
          webhookId === null
            ? nothing
            : html`${webhookName(app, webhookId)}
              ${deliveryId === null ? nothing : html`<a href=${deliveryLink(webhookId, deliveryId)}>delivery</a>`}`,
      },
      {
        head: 'Details',
        className: 'details-cell faint',
        cell: ({ details }) => detailsInWords(details),
        tooltip: ({ details }) => detailsInWords(details),
      },
    ],
    rows: entries,
  })
}

/**
 * @param {App} app
 * @param {string | null} memberId
 * @param {AuditEntry['details']} details
 */
function who({ session }, memberId, details) {
  if (memberId !== null) return memberName(session, memberId)
  const { actor } = details
  return typeof actor === 'string' ? actor : 'the operator'
}

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
function actionInWords(action) {
  return /** @type {Record<string, string>} */ (WORDS)[action] ?? action
}

/** What pages call fields of a webhook. @type {Readonly<Record<string, string>>} */
const FIELDS = { url: 'URL', description: 'name', subscribedEventKeys: 'event keys' }

/** Every action with its words. */
const ACTIONS = Object.entries(WORDS)

/** @typedef {Record<string, unknown>} Fields */

/**
 * Its details on one line: `mode force, total 12`; of a change what differs: `event keys + invoice:paid − *`.
 * @param {AuditEntry['details']} details
 * @returns {string}
 */
function detailsInWords(details) {
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

import { html, nothing } from '../lib/html.js'
import { actionInWords, ACTIONS, detailsInWords } from '../lib/audit-words.js'
import { deliveryLink, placeLink, webhookLink } from '../lib/links.js'
import { createListing } from '../lib/listing.js'
import { poll } from '../lib/poll.js'
import { nameOf } from '../parts/address.js'
import { selectField } from '../parts/filter-fields.js'
import { renderHeading, renderListing } from '../parts/listing.js'
import { renderTable } from '../parts/table.js'

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

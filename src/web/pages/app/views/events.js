import { html, nothing } from '../lib/html.js'
import { placeLink } from '../lib/links.js'
import { createListing } from '../lib/listing.js'
import { poll } from '../lib/poll.js'
import { createExportButton, renderHeading, renderListing, renderTable } from '../parts/listing.js'
import { createFilterPanel, keyField, rangeFields, searchField } from '../parts/filter-fields.js'
import { stateInWords } from '../parts/state-mark.js'
import { shortId } from './delivery-table.js'

/** @import { Column } from '../parts/listing.js' */
/** @import { App, EventSummary, Template, View } from '../types.d.ts' */

const EVERY_MS = 3_000

/**
 * The events of the organisation, newest first, and what became of their deliveries.
 * @param {App} app
 * @returns {View}
 */
export function createEventsView(app) {
  const names = /** @type {const} */ (['eventKey', 'since', 'until', 'search'])
  const listing = createListing(app, names, app.api.events)
  const renderFilter = createFilterPanel('Filter events')
  const renderExport = createExportButton(app, 'event', app.api.eventLines)
  const polling = poll(app, listing.refresh, EVERY_MS)
  /** @type {Column<EventSummary>[]} */
  const columns = [
    {
      head: 'Event key',
      className: 'event-key',
      cell: ({ id, eventKey }) =>
        html`<a class="mono" href=${placeLink('events', { event: id })}>${eventKey}</a>`,
    },
    { head: 'Deliveries', className: 'counts', cell: ({ deliveries }) => renderCounts(deliveries) },
    {
      head: 'Id',
      className: 'id',
      label: 'Id',
      cell: ({ id }) => html`<span class="mono" title=${id}>${shortId(id)}</span>`,
    },
    {
      head: 'Trace',
      className: 'trace',
      label: 'Trace',
      cell: ({ traceId }) => html`<span class="mono">${traceId}</span>`,
      tooltip: ({ traceId }) => traceId,
    },
    {
      head: 'Published',
      className: 'when',
      label: 'Published',
      cell: ({ createdAt }) => app.times.ago(createdAt),
    },
  ]

  return {
    title: 'Events',
    stop: polling.stop,
    render() {
      const { rows, filter, query, change } = listing
      return html`${renderHeading('Events', 'What was published, and what became of its deliveries.')}
        <section class="card deliveries" aria-label="Events">
          ${renderFilter(app, filter, change, {
            first: html`${keyField(app, filter.eventKey, change)}
            ${searchField('event or trace id', filter.search, change)}`,
            others: rangeFields(app, filter, change),
          })}
          ${renderListing(app, listing, {
            what: 'events',
            none: Object.keys(query).length > 0 ? 'No event matches the filter.' : 'No events yet.',
            show: (shown) => renderTable({ caption: 'Events, newest first', columns, rows: shown }),
          })}
          ${rows === null || rows.length === 0 ? nothing : renderExport(query)}
        </section>`
    },
  }
}

/** What is wrong comes first. */
const SHOWN = /** @type {const} */ ([
  ['failed', 'bad', 'failed'],
  ['waiting', 'warn', 'waiting'],
  ['inProgress', 'busy', 'in_progress'],
  ['pending', 'calm', 'pending'],
  ['completed', 'good', 'completed'],
  ['stopped', 'calm', 'stopped'],
])

/**
 * How many deliveries of an event are in each state; states without any are left out.
 * @param {EventSummary['deliveries']} deliveries
 * @returns {Template}
 */
function renderCounts(deliveries) {
  if (deliveries.total === 0) return html`<span class="faint">No webhook was subscribed</span>`
  return html`${SHOWN.filter(([name]) => deliveries[name] > 0).map(
    ([name, tone, state]) =>
      html`<span class="mark ${tone}"
        >${deliveries[name].toLocaleString()} ${stateInWords(state).toLowerCase()}</span
      > `,
  )}`
}

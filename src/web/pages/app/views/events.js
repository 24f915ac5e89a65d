import { html, nothing, repeat } from '../lib/html.js'
import { eventLink } from '../lib/links.js'
import { createListing } from '../lib/listing.js'
import { poll } from '../lib/poll.js'
import { createExportButton } from '../parts/export-button.js'
import { createFilterPanel, keyField, rangeFields, searchField } from '../parts/filter-fields.js'
import { renderPages, renderSearch } from '../parts/listing.js'
import { staleNote } from '../parts/stale.js'
import { shortId } from './delivery-table.js'
import { renderCounts } from './event-counts.js'

/** @import { App, EventSummary, View } from '../types.d.ts' */

const EVERY_MS = 3_000

/**
 * The events of the organisation, newest first, and what became of their deliveries.
 * @param {App} app
 * @param {URLSearchParams} parameters
 * @returns {View}
 */
export function createEventsView(app, parameters) {
  const names = /** @type {const} */ (['eventKey', 'since', 'until', 'search'])
  const listing = createListing(app, names, app.api.events, parameters)
  const renderFilter = createFilterPanel('Filter events')
  const renderExport = createExportButton(app, 'event', app.api.eventLines)
  const asking = poll(listing.refresh, EVERY_MS)

  return {
    title: 'Events',
    stop: asking.stop,
    render() {
      const { rows, filter, query, change } = listing
      return html`<div class="heading">
          <div>
            <h1 tabindex="-1">Events</h1>
            <p class="faint">What was published, and what became of its deliveries.</p>
          </div>
        </div>
        <section class="card deliveries" aria-label="Events">
          ${renderFilter(app, filter, change, {
            first: html`${keyField(app, filter.eventKey, change)}
            ${searchField('event or trace id', filter.search, change)}`,
            others: rangeFields(app, filter, change),
          })}
          ${staleNote(app, listing, listing.problem)}
          ${rows === null && listing.problem === '' ? html`<p class="faint">Loading …</p>` : nothing}
          ${rows === null || rows.length === 0 ? nothing : table(rows)}
          ${
            rows?.length === 0 && listing.search === null
              ? html`<p class="faint">
                  ${Object.keys(query).length > 0 ? 'No event matches the filter.' : 'No events yet.'}
                </p>`
              : nothing
          }
          ${renderSearch(app, listing)} ${renderPages(listing, 'events')}
          ${rows === null || rows.length === 0 ? nothing : renderExport(query)}
        </section>`
    },
  }

  /** @param {readonly EventSummary[]} rows */
  function table(rows) {
    // The roles stay where a narrow window lays the rows out as cards.
    return html`<table class="events-table" role="table">
      <caption class="unseen">
        Events, newest first
      </caption>
      <thead role="rowgroup">
        <tr role="row">
          <th role="columnheader" scope="col" class="event-key">Event key</th>
          <th role="columnheader" scope="col" class="counts">Deliveries</th>
          <th role="columnheader" scope="col" class="id">Id</th>
          <th role="columnheader" scope="col" class="trace">Trace</th>
          <th role="columnheader" scope="col" class="when">Published</th>
        </tr>
      </thead>
      <tbody role="rowgroup">
        ${repeat(
          rows,
          ({ id }) => id,
          ({ id, eventKey, createdAt, traceId, deliveries }) =>
            html`<tr role="row">
              <td role="cell" class="event-key"><a class="mono" href=${eventLink(id)}>${eventKey}</a></td>
              <td role="cell" class="counts">${renderCounts(deliveries)}</td>
              <td role="cell" class="id" data-label="Id">
                <span class="mono" title=${id}>${shortId(id)}</span>
              </td>
              <td role="cell" class="trace" data-label="Trace" title=${traceId}>
                <span class="mono">${traceId}</span>
              </td>
              <td role="cell" class="when" data-label="Published">${app.times.ago(createdAt)}</td>
            </tr>`,
        )}
      </tbody>
    </table>`
  }
}

import { html, nothing } from '../lib/html.js'
import { createListing } from '../lib/listing.js'
import { MANAGE, may } from '../lib/permissions.js'
import { createExportButton, renderListing } from '../parts/listing.js'
import { createBulkActions } from './bulk-actions.js'
import { createDeliveryFilter, DELIVERY_FILTER } from './delivery-filter.js'
import { createDeliveryTable } from './delivery-table.js'
import { createReplays } from './replays.js'
import { createSidePanel } from './side-panel.js'

/** @import { App } from '../types.d.ts' */

/**
 * A webhook's deliveries, newest first: found by a filter, in pages, selected and acted on.
 * @param {App} app
 * @param {string} webhookId
 */
export function createDeliveries(app, webhookId) {
  const listing = createListing(app, DELIVERY_FILTER, (query) => app.api.deliveries(webhookId, query))
  const renderFilter = createDeliveryFilter()
  const renderExport = createExportButton(app, 'delivery', (query) => app.api.deliveryLines(webhookId, query))
  const bulk = createBulkActions(app, webhookId, listing, listing.reread)
  const panel = createSidePanel(app)
  const selection = may(app.session, MANAGE) ? bulk : null
  const table = createDeliveryTable(app, webhookId, selection, listing.reread, panel)
  const replays = createReplays(app, webhookId)
  /** @param {Parameters<typeof listing.change>[0]} changes */
  const change = (changes) => {
    bulk.clear()
    listing.change(changes)
  }

  return {
    stop: panel.stop,
    /** Does not wait for the rows: a long search holds nothing else up. */
    async refresh() {
      listing.refresh().catch(() => undefined)
      await Promise.all([bulk.refresh(), replays.refresh()])
    },
    render() {
      const { rows, query } = listing
      return panel.render(
        html`<section class="card deliveries" aria-label="Deliveries">
          <h2 class="unseen">Deliveries</h2>
          ${renderFilter(app, listing.filter, change)} ${bulk.renderJobs()} ${replays.render()}
          ${bulk.render()}
          ${renderListing(app, listing, {
            what: 'deliveries',
            none: Object.keys(query).length > 0 ? 'No delivery matches the filter.' : 'No deliveries yet.',
            show: table.render,
          })}
          ${rows === null || rows.length === 0 ? nothing : renderExport(query)}
        </section>`,
      )
    },
  }
}

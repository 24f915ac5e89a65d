import { html } from '../lib/html.js'
import { webhookLink } from '../lib/links.js'
import { createListing } from '../lib/listing.js'
import { poll } from '../lib/poll.js'
import { nameOf } from '../parts/address.js'
import { jobMark, progressInWords } from '../parts/job-progress.js'
import { CRUMBS, renderHeading, renderListing, renderTable } from '../parts/listing.js'

/** @import { Column } from '../parts/listing.js' */
/** @import { App, RetryJob, View } from '../types.d.ts' */

const EVERY_MS = 2_000

/** @type {Record<RetryJob['mode'], string>} */
const MODES = {
  failed: 'Retry failed',
  force: 'Force retry',
  stopped: 'Resume stopped',
  undelivered: 'Retry selected',
}

/**
 * The retry jobs of the organisation and what became of their deliveries, newest first.
 * @param {App} app
 * @returns {View}
 */
export function createRetryJobsView(app) {
  const listing = createListing(app, [], app.api.retryJobs)
  const polling = poll(
    app,
    async () => {
      app.webhooks ??= (await app.api.overview()).data
      await listing.refresh()
    },
    EVERY_MS,
  )
  /** @type {Column<RetryJob>[]} */
  const columns = [
    { head: 'Action', cell: ({ mode }) => html`<b>${MODES[mode]}</b>` },
    { head: 'Webhook', className: 'event-key', cell: webhookOf },
    { head: 'State', cell: jobMark },
    { head: 'Outcome', cell: progressInWords },
    { head: 'Requested', className: 'when', cell: ({ createdAt }) => app.times.ago(createdAt) },
  ]

  return {
    title: 'Retry jobs',
    stop: polling.stop,
    render: () =>
      html`${CRUMBS}
        ${renderHeading('Retry jobs', 'Retries of many deliveries and their outcome, newest first. Kept for 30 days.')}
        <section class="card deliveries" aria-label="Retry jobs">
          ${renderListing(app, listing, {
            what: 'retry jobs',
            none: 'No retry job so far.',
            show: (rows) => renderTable({ caption: 'Retry jobs, newest first', columns, rows }),
          })}
        </section>`,
  }

  /** @param {RetryJob} job */
  function webhookOf({ webhookId }) {
    if (webhookId === null) return 'All enabled webhooks'
    const webhook = app.webhooks?.find(({ id }) => id === webhookId)
    return webhook === undefined
      ? html`<span class="faint">a deleted webhook</span>`
      : html`<a href=${webhookLink(webhookId)}>${nameOf(webhook)}</a>`
  }
}

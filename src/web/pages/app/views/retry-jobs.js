import { html, nothing, repeat } from '../lib/html.js'
import { webhookLink } from '../lib/links.js'
import { createListing } from '../lib/listing.js'
import { poll } from '../lib/poll.js'
import { nameOf } from '../parts/address.js'
import { jobMark, progressInWords } from '../parts/job-progress.js'
import { renderPages } from '../parts/listing.js'
import { staleNote } from '../parts/stale.js'

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
 * @param {URLSearchParams} parameters
 * @returns {View}
 */
export function createRetryJobsView(app, parameters) {
  const listing = createListing(
    app,
    [],
    async (query) => ({ ...(await app.api.retryJobs(query)), searchedUntil: null }),
    parameters,
  )
  const asking = poll(async () => {
    app.webhooks ??= (await app.api.overview()).data
    await listing.refresh()
  }, EVERY_MS)

  return {
    title: 'Retry jobs',
    stop: asking.stop,
    render() {
      const { rows, problem } = listing
      return html`<nav class="crumbs" aria-label="Breadcrumbs"><a href="/developer">Webhooks</a></nav>
        <div class="heading">
          <div>
            <h1 tabindex="-1">Retry jobs</h1>
            <p class="faint">Retries of many deliveries and their outcome, newest first. Kept for 30 days.</p>
          </div>
        </div>
        <section class="card deliveries" aria-label="Retry jobs">
          ${staleNote(app, listing, problem)}
          ${rows === null && problem === '' ? html`<p class="faint">Loading …</p>` : nothing}
          ${rows?.length === 0 ? html`<p class="faint">No retry job so far.</p>` : nothing}
          ${rows === null || rows.length === 0 ? nothing : table(rows)} ${renderPages(listing, 'retry jobs')}
        </section>`
    },
  }

  /** @param {readonly RetryJob[]} rows */
  function table(rows) {
    // The roles stay where a narrow window lays the rows out as cards.
    return html`<table class="events-table" role="table">
      <caption class="unseen">
        Retry jobs, newest first
      </caption>
      <thead role="rowgroup">
        <tr role="row">
          <th role="columnheader" scope="col">Action</th>
          <th role="columnheader" scope="col">Webhook</th>
          <th role="columnheader" scope="col">State</th>
          <th role="columnheader" scope="col">Outcome</th>
          <th role="columnheader" scope="col" class="when">Requested</th>
        </tr>
      </thead>
      <tbody role="rowgroup">
        ${repeat(
          rows,
          ({ id }) => id,
          (job) =>
            html`<tr role="row">
              <td role="cell"><b>${MODES[job.mode]}</b></td>
              <td role="cell" class="event-key">${webhookOf(job)}</td>
              <td role="cell">${jobMark(job)}</td>
              <td role="cell">${progressInWords(job)}</td>
              <td role="cell" class="when">${app.times.ago(job.createdAt)}</td>
            </tr>`,
        )}
      </tbody>
    </table>`
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

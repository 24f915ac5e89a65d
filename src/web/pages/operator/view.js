import { html, nothing, repeat } from '../app/lib/html.js'
import { createListing } from '../app/lib/listing.js'
import { poll } from '../app/lib/poll.js'
import { duration } from '../app/lib/times.js'
import { nameOf } from '../app/parts/address.js'
import { renderPages } from '../app/parts/listing.js'
import { inWords } from '../app/parts/problem.js'
import { staleNote } from '../app/parts/stale.js'
import { mark, stateInWords } from '../app/parts/state-mark.js'
import { openHold, openRelease } from './hold.js'

/** @import { App, OperatorOverview, OperatorSession, OperatorWebhook, OperatorWebhooks, Template, View } from '../app/types.d.ts' */

/**
 * What the view of an operator works with.
 * @typedef {Pick<App, 'times' | 'update' | 'openDialog' | 'closeDialog' | 'showMessage'> & {
 *   session: OperatorSession,
 *   ask: (method: string, path: string, body?: object) => Promise<unknown>,
 * }} OperatorApp
 */

const EVERY_MS = 5_000

/** Counts that come this far may be higher. */
const MAX_SCANNED = 1_000

/** @type {Record<string, { title: string, none: string }>} */
const LISTS = {
  failing: { title: 'Failing', none: 'No webhook fails.' },
  degraded: { title: 'Degraded', none: 'No webhook is degraded.' },
  paused: { title: 'Paused', none: 'No workflow is paused in Temporal.' },
  disabled: { title: 'Disabled', none: 'No webhook is disabled or held.' },
}

/**
 * All organisations at a glance, and their webhooks that need attention, in one list for each state.
 * @param {OperatorApp} app
 * @returns {View}
 */
export function createOperatorView(app) {
  /** @type {OperatorOverview | null} */
  let overview = null
  let problem = ''
  const parameters = new URLSearchParams(location.search)
  const wanted = parameters.get('state') ?? ''
  parameters.set('state', wanted in LISTS ? wanted : 'failing')
  const listing = createListing(
    app,
    ['state'],
    async (query) => ({
      .../** @type {OperatorWebhooks} */ (
        await app.ask('GET', `/api/operator/webhooks?${new URLSearchParams(query).toString()}`)
      ),
      searchedUntil: null,
    }),
    parameters,
  )
  const asking = poll(async () => {
    try {
      const [found] = await Promise.all([app.ask('GET', '/api/operator/overview'), listing.refresh()])
      overview = /** @type {OperatorOverview} */ (found)
      problem = ''
    } catch (error) {
      problem = inWords(error)
      throw error
    } finally {
      app.update()
    }
  }, EVERY_MS)
  /**
   * @param {MouseEvent} event
   * @param {string} state
   */
  const go = (event, state) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return
    event.preventDefault()
    listing.change({ state })
  }

  return {
    title: 'Operator',
    stop: asking.stop,
    render() {
      const { rows } = listing
      const state = listing.filter.state
      return html`<div class="heading">
          <div><h1 tabindex="-1">All organisations</h1></div>
        </div>
        ${staleNote(app, asking, problem)} ${overview === null ? nothing : facts(overview)}
        <nav class="tabs" aria-label="Webhooks by state">
          ${Object.entries(LISTS).map(
            ([name, { title }]) =>
              html`<a
                href="/operator?state=${name}"
                aria-current=${name === state ? 'page' : 'false'}
                @click=${(/** @type {MouseEvent} */ event) => go(event, name)}
                >${title}</a
              >`,
          )}
        </nav>
        <section class="card deliveries" aria-label="Webhooks">
          ${rows === null && problem === '' ? html`<p class="faint">Loading …</p>` : nothing}
          ${rows?.length === 0 ? html`<p class="faint">${LISTS[state]?.none}</p>` : nothing}
          ${rows === null || rows.length === 0 ? nothing : table(app, rows, asking.refresh)}
          ${renderPages(listing, 'webhooks')}
        </section>`
    },
  }
}

/**
 * @param {OperatorOverview} overview
 * @returns {Template}
 */
function facts({ organisations, webhooks, backlog }) {
  /**
   * @param {string} label
   * @param {number} count
   * @param {string} tone
   * @param {string} [note]
   */
  const fact = (label, count, tone, note = '') =>
    html`<div class=${count > 0 ? tone : ''}>
      <dt>${label}</dt>
      <dd>${count.toLocaleString()}${note === '' ? nothing : html` <span class="hint">${note}</span>`}</dd>
    </div>`
  /** @param {number} ms */
  const oldest = (ms) => (ms === 0 ? '' : `the oldest for ${duration(ms)}`)
  const more = (/** @type {boolean} */ isMore) => (isMore ? 'or more' : '')
  return html`<section class="card status" aria-label="Overview">
    <dl class="facts">
      ${fact('Organisations', organisations, '')}
      ${fact('Webhooks failing', webhooks.failing, 'bad', more(webhooks.isCapped))}
      ${fact('With paused workflows', webhooks.paused, 'warn', more(webhooks.paused >= MAX_SCANNED))}
      ${fact('Disabled', webhooks.disabled, '', webhooks.held === 0 ? '' : `${webhooks.held.toLocaleString()} held`)}
      ${
        backlog === null
          ? html`<p class="faint">The backlog could not be counted in time.</p>`
          : html`${fact('Open incidents', backlog.openIncidents, 'bad')}
            ${fact('Waiting for first attempt', backlog.waitingForFirstAttempt, '', oldest(backlog.oldestWaitingForFirstAttemptMs))}
            ${fact('Waiting for retry', backlog.waitingForRetry, 'warn')}
            ${fact('Permanently failed', backlog.permanentlyFailed, 'bad')}
            ${fact('Workflows owed', backlog.workflowsOwed, '', oldest(backlog.oldestWorkflowOwedMs))}`
      }
    </dl>
  </section>`
}

/**
 * @param {OperatorApp} app
 * @param {readonly OperatorWebhook[]} webhooks
 * @param {() => Promise<void>} refresh
 */
function table(app, webhooks, refresh) {
  return html`<table class="events-table operator" role="table">
    <caption class="unseen">
      Webhooks, newest first
    </caption>
    <thead role="rowgroup">
      <tr role="row">
        <th role="columnheader" scope="col">Webhook</th>
        <th role="columnheader" scope="col">Since</th>
        <th role="columnheader" scope="col">Why</th>
        <th role="columnheader" scope="col">Deliveries</th>
        <th role="columnheader" scope="col"><span class="unseen">Action</span></th>
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${repeat(
        webhooks,
        ({ id }) => id,
        (webhook) => row(app, webhook, refresh),
      )}
    </tbody>
  </table>`
}

/**
 * @param {OperatorApp} app
 * @param {OperatorWebhook} webhook
 * @param {() => Promise<void>} refresh
 */
function row(app, webhook, refresh) {
  const { organisation, since, cause, temporalUrl, operatorHold, enabled } = webhook
  const name = nameOf(webhook)
  const isHeld = operatorHold !== null
  return html`<tr role="row">
    <td role="cell" class="webhook" title=${webhook.id}>
      <b>${name}</b> <span class="faint" title=${organisation.id}>${organisation.name}</span>
    </td>
    <td role="cell" class="when">
      ${app.times.ago(since)} ${isHeld ? mark('warn', 'Held', 'off') : nothing}
      ${!isHeld && !enabled ? mark('calm', 'Disabled', 'off') : nothing}
    </td>
    <td role="cell" class="cause">${cause ?? '–'}</td>
    <td role="cell" class="waiting">${counts(webhook)}</td>
    <td role="cell" class="actions">
      ${temporalUrl === null ? nothing : html`<a href=${temporalUrl} target="_blank" rel="noopener noreferrer" aria-label="Workflows of ${name}">Workflows</a>`}
      ${
        app.session.scopes.includes('manage')
          ? html`<button
              type="button"
              class="quiet"
              aria-label="${isHeld ? 'End hold on' : 'Hold'} ${name}"
              @click=${() => (isHeld ? openRelease : openHold)(app, webhook, refresh)}
            >
              ${isHeld ? 'End hold' : 'Hold'}
            </button>`
          : nothing
      }
    </td>
  </tr>`
}

/** @param {OperatorWebhook} webhook */
function counts({ counts: { waitingForFirstAttempt, waitingForRetry, permanentlyFailed, stopped, paused } }) {
  const words = [
    [waitingForFirstAttempt, stateInWords('pending')],
    [waitingForRetry, stateInWords('waiting')],
    [permanentlyFailed, stateInWords('failed')],
    [stopped, stateInWords('stopped')],
    [paused, 'paused'],
  ].flatMap(([count, state]) =>
    count === 0 ? [] : [`${/** @type {number} */ (count).toLocaleString()} ${String(state).toLowerCase()}`],
  )
  return words.length === 0 ? 'none' : words.join(', ')
}

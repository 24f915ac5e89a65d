import { html, nothing } from '../app/lib/html.js'
import { createListing } from '../app/lib/listing.js'
import { poll } from '../app/lib/poll.js'
import { duration } from '../app/lib/times.js'
import { nameOf } from '../app/parts/address.js'
import { renderHeading, renderListing, ACTION, renderTable } from '../app/parts/listing.js'
import { staleNote, problemNote } from '../app/parts/problem.js'
import { mark, renderFact, stateInWords } from '../app/parts/state-mark.js'
import { closeButton, createTask, openConfirm } from '../app/parts/dialog.js'

/** @import { App, OperatorOverview, OperatorSession, OperatorWebhook, OperatorWebhooks, Template, View } from '../app/types.d.ts' */

/**
 * What the view of an operator works with.
 * @typedef {Pick<App, 'times' | 'update' | 'openDialog' | 'showMessage'> & {
 *   session: OperatorSession,
 *   ask: <T>(method: string, path: string, body?: object) => Promise<T>,
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
 * The list that an address names, or the first one.
 * @param {{ state?: string }} query
 */
const stateOf = ({ state = '' }) => (Object.hasOwn(LISTS, state) ? state : 'failing')

/**
 * All organisations at a glance, and their webhooks that need attention, in one list for each state.
 * @param {OperatorApp} app
 * @returns {View}
 */
export function createOperatorView(app) {
  /** @type {OperatorOverview | null} */
  let overview = null
  /**
   * @param {Record<string, string>} query
   * @returns {Promise<OperatorWebhooks>}
   */
  const load = (query) => {
    const search = new URLSearchParams({ ...query, state: stateOf(query) })
    return app.ask('GET', `/api/operator/webhooks?${search.toString()}`)
  }
  const listing = createListing(app, ['state'], load)
  const polling = poll(
    app,
    async () => {
      /** @type {Promise<OperatorOverview>} */
      const found = app.ask('GET', '/api/operator/overview')
      ;[overview] = await Promise.all([found, listing.refresh()])
    },
    EVERY_MS,
  )
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
    stop: polling.stop,
    render() {
      const state = stateOf(listing.filter)
      return html`${renderHeading('All organisations')} ${staleNote(app, polling.answers)}
        ${overview === null ? nothing : facts(overview)}
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
          ${renderListing(app, listing, {
            what: 'webhooks',
            none: LISTS[state]?.none ?? '',
            show: (rows) => table(app, rows, polling.refresh),
          })}
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
   * @param {string} [tone]
   * @param {string} [note]
   */
  const fact = (label, count, tone, note) => renderFact({ label, count, tone, note })
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
  return renderTable({
    caption: 'Webhooks, newest first',
    columns: [
      {
        head: 'Webhook',
        cell: ({ organisation, ...webhook }) =>
          html`<b>${nameOf(webhook)}</b>
            <span class="faint" title=${organisation.id}>${organisation.name}</span>`,
        tooltip: ({ id }) => id,
      },
      {
        head: 'Since',
        className: 'when',
        cell: ({ since, operatorHold, enabled }) =>
          html`${app.times.ago(since)} ${operatorHold === null ? nothing : mark('warn', 'Held', 'off')}
          ${operatorHold === null && !enabled ? mark('calm', 'Disabled', 'off') : nothing}`,
      },
      { head: 'Why', cell: ({ cause }) => cause ?? '–' },
      { head: 'Deliveries', cell: counts },
      { head: ACTION, cell: (webhook) => actions(app, webhook, refresh) },
    ],
    rows: webhooks,
  })
}

/**
 * @param {OperatorApp} app
 * @param {OperatorWebhook} webhook
 * @param {() => Promise<void>} refresh
 */
function actions(app, webhook, refresh) {
  const { temporalUrl, operatorHold } = webhook
  const [name, isHeld] = [nameOf(webhook), operatorHold !== null]
  return html`${temporalUrl === null ? nothing : html`<a href=${temporalUrl} target="_blank" rel="noopener noreferrer" aria-label="Workflows of ${name}">Workflows</a>`}
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
  }`
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

/**
 * @param {OperatorWebhook} webhook
 * @param {'disable' | 'enable'} action
 */
function pathOf({ id, organisation }, action) {
  return `/api/operator/organisations/${encodeURIComponent(organisation.id)}/webhooks/${id}/${action}`
}

/**
 * Asks why, and says what a hold does.
 * @param {OperatorApp} app
 * @param {OperatorWebhook} webhook
 * @param {() => Promise<void>} refresh
 */
function openHold(app, webhook, refresh) {
  const task = createTask(app)
  /** @param {SubmitEvent} event */
  const submit = (event) => {
    event.preventDefault()
    const { elements } = /** @type {HTMLFormElement} */ (event.currentTarget)
    const reason = /** @type {HTMLInputElement} */ (elements.namedItem('reason')).value.trim()
    return task.run(async () => {
      await app.ask('POST', pathOf(webhook, 'disable'), { reason })
      close()
      app.showMessage('The webhook is held.')
      await refresh()
    })
  }
  const close = app.openDialog({
    label: 'Hold webhook',
    task,
    render: () =>
      html`<h2>Hold ${nameOf(webhook)}?</h2>
        <p>
          Nothing more is sent to it; an attempt under way finishes. ${webhook.organisation.name} sees since
          when and why, and cannot switch it on until you end the hold. Events that happen meanwhile are not
          kept for it.
        </p>
        <form class="fields" @submit=${submit}>
          <label class="field"
            >Reason
            <input
              name="reason"
              required
              maxlength="500"
              autocomplete="off"
              placeholder="what the organisation is to know, and whom it asks"
            />
          </label>
          ${problemNote(task.problem)}
          <div class="buttons end">
            ${closeButton(close, task)}
            <button class="danger" ?disabled=${task.isBusy}>Hold webhook</button>
          </div>
        </form>`,
  })
}

/**
 * @param {OperatorApp} app
 * @param {OperatorWebhook} webhook
 * @param {() => Promise<void>} refresh
 */
function openRelease(app, webhook, refresh) {
  openConfirm(app, {
    title: `End the hold on ${nameOf(webhook)}?`,
    text: html`<p>The reason was: ${webhook.operatorHold?.reason}</p>
      <p>
        It is on again if it was before the hold. Deliveries that were never attempted go on by themselves;
        ${webhook.organisation.name} can resume the others.
      </p>`,
    button: 'End hold',
    isDanger: false,
    run: async (close) => {
      await app.ask('POST', pathOf(webhook, 'enable'))
      close()
      app.showMessage('The hold has ended.')
      await refresh()
    },
  })
}

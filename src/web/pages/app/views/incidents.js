import { html, nothing } from '../lib/html.js'
import { duration, plural } from '../lib/times.js'
import { inWords, problemNote } from '../parts/problem.js'
import { mark } from '../parts/state-mark.js'
import { backlogInWords, isBackedUp } from '../parts/first-attempts.js'

/** @import { App, Incident, Overview, Tab, Template } from '../types.d.ts' */

/** @type {Record<Incident['notifications'][number]['state'], string>} */
const STATES = {
  pending: 'not sent yet',
  sending: 'being sent',
  sent: 'sent',
  failed: 'could not be sent',
  unknown: 'sent, without an answer',
}

/**
 * A webhook's incidents, and who was notified of each.
 * @param {App} app
 * @param {string} webhookId
 * @returns {Tab}
 */
export function createIncidents(app, webhookId) {
  /** @type {Incident[] | null} */
  let incidents = null
  let problem = ''
  return {
    async refresh() {
      try {
        incidents = (await app.api.incidents(webhookId)).data
        problem = ''
      } catch (error) {
        problem = inWords(error)
        throw error
      }
    },
    render: () =>
      html`<section class="card incidents">
        <h2>Incidents</h2>
        ${incidents === null ? problemNote(problem) : nothing}
        ${incidents?.length === 0 ? html`<p class="faint">None. Deliveries have not failed so far.</p>` : nothing}
        <ul class="plain">
          ${(incidents ?? []).map((incident) => html`<li>${renderIncident(app, incident)}</li>`)}
        </ul>
      </section>`,
  }
}

/**
 * Says that deliveries fail, and since when, and that first attempts wait longer than usual.
 * @param {App} app
 * @param {Overview} webhook
 * @returns {Template}
 */
export function renderOpenIncident({ times }, webhook) {
  const { openIncident, waitingForRetry, permanentlyFailed } = webhook
  const backlog = isBackedUp(webhook) ? html`<p>${backlogInWords(webhook)}.</p>` : nothing
  if (openIncident === null)
    return backlog === nothing
      ? nothing
      : html`<section class="banner slow" aria-label="First attempts">${backlog}</section>`
  const { openedAt } = openIncident
  return html`<section class="banner" aria-label="Open incident">
    <p>
      <b>Deliveries fail since ${times.at(openedAt)}</b>, for ${duration(Date.now() - Date.parse(openedAt))}.
      ${whatRemains(waitingForRetry, permanentlyFailed)}
    </p>
    ${backlog}
  </section>`
}

/**
 * @param {number} waiting
 * @param {number} failed
 */
function whatRemains(waiting, failed) {
  if (waiting + failed === 0) return 'The incident ends with the next delivery that succeeds.'
  const waits = waiting === 1 ? 'waits for its retry' : 'wait for their retry'
  if (failed === 0) return `${plural(waiting, 'delivery')} ${waits}; none is permanently failed so far.`
  const givenUp = `${plural(failed, 'delivery')} ${failed === 1 ? 'is' : 'are'} permanently failed`
  return waiting === 0
    ? `${givenUp}; no other waits for a retry.`
    : `${givenUp}; ${plural(waiting, 'other')} ${waits}.`
}

/**
 * @param {App} app
 * @param {Incident} incident
 */
function renderIncident({ times }, { openedAt, closedAt, notifications }) {
  const end = closedAt === null ? Date.now() : Date.parse(closedAt)
  const lasted = duration(end - Date.parse(openedAt))
  return html`<p>
      ${closedAt === null ? mark('bad', 'Open') : mark('calm', 'Over', 'good')} ${times.at(openedAt)}
      <span class="faint">${closedAt === null ? `for ${lasted}` : `lasted ${lasted}`}</span>
    </p>
    ${
      notifications.length === 0
        ? html`<p class="hint">No notification was sent.</p>`
        : html`<details>
            <summary>Who was notified (${notifications.length})</summary>
            <ul class="plain notified">
              ${notifications.map((notification) => html`<li>${renderNotification(times, notification)}</li>`)}
            </ul>
          </details>`
    }`
}

/**
 * @param {App['times']} times
 * @param {Incident['notifications'][number]} notification
 */
function renderNotification(times, { kind, channel, recipient, state, sentAt }) {
  const whom = channel === 'email' ? (recipient ?? 'somebody, by e-mail') : 'a browser, by push message'
  return html`<b>${kind === 1 ? 'Keeps failing' : 'First permanently failed delivery'}</b> ${whom}
    <span class="faint">${STATES[state]}${sentAt === null ? nothing : html` ${times.at(sentAt)}`}</span>`
}

import { html, nothing } from '../lib/html.js'
import { duration, plural } from '../lib/times.js'
import { inWords, problemNote } from '../parts/problem.js'

/** @import { App, Incident, Overview } from '../types.d.ts' */

/** Of those that are closed, so many are of interest here. */
const SHOWN = 5

/** @type {Record<Incident['notifications'][number]['state'], string>} */
const STATES = {
  pending: 'not sent yet',
  sending: 'being sent',
  sent: 'sent',
  failed: 'could not be sent',
  unknown: 'sent, without an answer',
}

/**
 * A webhook's incidents, and who was told of each.
 * @param {App} app
 * @param {string} webhookId
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
      }
    },
    /**
     * Says above all else that deliveries fail, and since when.
     * @param {Overview} webhook
     */
    renderOpen({ openIncident, waitingForRetry, permanentlyFailed }) {
      if (openIncident === null) return nothing
      const { openedAt } = openIncident
      return html`<section class="banner" aria-label="Open incident">
        <p>
          <b>Deliveries fail since ${app.times.at(openedAt)}</b>, for
          ${duration(Date.now() - Date.parse(openedAt))}. ${whatRemains(waitingForRetry, permanentlyFailed)}
        </p>
      </section>`
    },
    render: () =>
      html`<section class="card incidents">
        <h2>Incidents</h2>
        ${problemNote(problem)}
        ${incidents?.length === 0 ? html`<p class="faint">None. Deliveries have not failed so far.</p>` : nothing}
        <ul class="plain">
          ${(incidents ?? []).slice(0, SHOWN).map((incident) => html`<li>${renderIncident(app, incident)}</li>`)}
        </ul>
      </section>`,
  }
}

/**
 * @param {number} waiting
 * @param {number} failed
 */
function whatRemains(waiting, failed) {
  if (waiting + failed === 0) return 'The incident ends with the next delivery that succeeds.'
  if (failed === 0) return 'They are retried on the schedule; none is given up so far.'
  return `${plural(failed, 'delivery')} ${failed === 1 ? 'is' : 'are'} given up; the others are retried on the schedule.`
}

/**
 * @param {App} app
 * @param {Incident} incident
 */
function renderIncident({ times }, { openedAt, closedAt, notifications }) {
  const end = closedAt === null ? Date.now() : Date.parse(closedAt)
  const lasted = duration(end - Date.parse(openedAt))
  return html`<p>
      ${closedAt === null ? html`<span class="mark bad">Open</span>` : html`<span class="mark calm">Over</span>`}
      ${times.at(openedAt)}
      <span class="faint">${closedAt === null ? `for ${lasted}` : `lasted ${lasted}`}</span>
    </p>
    ${
      notifications.length === 0
        ? html`<p class="hint">Nobody was told.</p>`
        : html`<details>
            <summary>Who was told (${notifications.length})</summary>
            <ul class="plain told">
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
  return html`<b>${kind === 1 ? 'Keeps failing' : 'First delivery given up'}</b> ${whom}
    <span class="faint">${STATES[state]}${sentAt === null ? nothing : html` ${times.at(sentAt)}`}</span>`
}

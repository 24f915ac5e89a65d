import { html, nothing } from '../lib/html.js'
import { deliveriesLink } from '../lib/links.js'
import { createListing } from '../lib/listing.js'
import { duration, plural } from '../lib/times.js'
import { renderFailures } from '../parts/failures.js'
import { renderListing } from '../parts/listing.js'
import { backlogInWords, isBackedUp, mark } from '../parts/state-mark.js'

/** @import { App, Incident, Overview, Tab, Template } from '../types.d.ts' */

/** The page of the webhook asks more often than incidents change. */
const EVERY_MS = 10_000

/** @type {Record<Incident['notifications'][number]['state'], string>} */
const STATES = {
  pending: 'not sent yet',
  sending: 'being sent',
  sent: 'sent',
  failed: 'could not be sent',
  unknown: 'sent, without an answer',
}

/**
 * A webhook's incidents in pages: cause, counts, duration, and who was notified of each.
 * @param {App} app
 * @param {string} webhookId
 * @returns {Tab}
 */
export function createIncidents(app, webhookId) {
  const listing = createListing(app, [], (query) => app.api.incidents(webhookId, query))
  let askedAt = -Infinity
  return {
    async refresh() {
      if (performance.now() - askedAt < EVERY_MS) return
      askedAt = performance.now()
      await listing.refresh()
    },
    render: () =>
      html`<section class="card incidents">
        <h2>Incidents</h2>
        ${renderListing(app, listing, {
          what: 'incidents',
          none: 'None. Deliveries have not failed so far.',
          show: (rows) =>
            html`<ul class="plain">
              ${rows.map((incident) => html`<li>${renderIncident(app, webhookId, incident)}</li>`)}
            </ul>`,
        })}
      </section>`,
  }
}

/**
 * Says that the operator holds the webhook, since when and why.
 * @param {App} app
 * @param {Overview} webhook
 * @returns {Template}
 */
export function renderHold({ times }, { operatorHold }) {
  if (operatorHold === null) return nothing
  const { since, reason } = operatorHold
  return html`<section class="banner warn" aria-label="Operator's hold">
    <p><b>The operator holds this webhook since ${times.at(since)}</b>: ${reason}</p>
    <p>Nothing is sent to it, and it cannot be switched on, until the operator ends the hold.</p>
  </section>`
}

/**
 * Says that deliveries fail, and since when, and that first attempts wait longer than usual.
 * @param {App} app
 * @param {Overview} webhook
 * @returns {Template}
 */
export function renderOpenIncident({ times }, webhook) {
  const { openIncident, status, waitingForRetry, permanentlyFailed } = webhook
  const backlog = isBackedUp(webhook) ? html`<p>${backlogInWords(webhook)}.</p>` : nothing
  if (openIncident === null)
    return backlog === nothing
      ? nothing
      : html`<section class="banner warn" aria-label="First attempts">${backlog}</section>`
  const { openedAt } = openIncident
  return html`<section class="banner ${status === 'degraded' ? 'warn' : 'bad'}" aria-label="Open incident">
    <p>
      <b>${status === 'degraded' ? 'Some deliveries' : 'Deliveries'} fail since ${times.at(openedAt)}</b>, for
      ${duration(Date.now() - Date.parse(openedAt))}. ${whatRemains(waitingForRetry, permanentlyFailed)}
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
 * @param {string} webhookId
 * @param {Incident} incident
 */
function renderIncident(app, webhookId, { openedAt, closedAt, exhaustedAt, failures, notifications }) {
  const { times } = app
  const end = closedAt === null ? Date.now() : Date.parse(closedAt)
  const lasted = duration(end - Date.parse(openedAt))
  const attemptedSince = failures.causes.map(({ firstAt }) => firstAt).sort()[0] ?? openedAt
  return html`<p class="lead">
      ${closedAt === null ? mark('bad', 'Open') : mark('calm', 'Over', 'good')}
      <b>${times.at(openedAt)}</b>
      <span class="faint">${closedAt === null ? `for ${lasted}` : `lasted ${lasted}`}</span>
      <span>${countsInWords(failures)}</span>
      ${exhaustedAt === null ? nothing : html`<span>First permanently failed ${times.at(exhaustedAt)}</span>`}
      ${
        failures.failedAttempts === 0
          ? nothing
          : html`<a href=${deliveriesLink(webhookId, { attemptedSince, attemptedUntil: closedAt ?? '' })}
              >Deliveries attempted during it</a
            >`
      }
    </p>
    ${renderFailures(app, webhookId, failures)}
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

/** @param {Incident['failures']} failures */
function countsInWords({ failedAttempts, deliveries, isCapped }) {
  if (failedAttempts === 0) return 'Its attempts are no longer kept'
  const atLeast = isCapped ? 'at least ' : ''
  return `${atLeast}${plural(failedAttempts, 'failed attempt')} of ${plural(deliveries, 'delivery')}`
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

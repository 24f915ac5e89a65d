import { ApiProblem } from '../lib/api.js'
import { html, nothing, repeat } from '../lib/html.js'
import { deliveryLink, eventsLink } from '../lib/links.js'
import { poll } from '../lib/poll.js'
import { plural } from '../lib/times.js'
import { nameOf } from '../parts/address.js'
import { createPayload } from '../parts/payload.js'
import { inWords } from '../parts/problem.js'
import { staleNote } from '../parts/stale.js'
import { stateMark } from '../parts/state-mark.js'
import { erasedNote, eraseButton, idRow } from './delivery-parts.js'
import { shortId } from './delivery-table.js'

/** @import { App, EventDetail, Overview, View } from '../types.d.ts' */

const EVERY_MS = 3_000

/**
 * One event: its payload, and the delivery to each webhook.
 * @param {App} app
 * @param {string} eventId
 * @returns {View}
 */
export function createEventView(app, eventId) {
  /** @type {EventDetail | null} */
  let event = null
  /** @type {Map<string, Overview>} */
  let webhooks = new Map()
  let [problem, refused] = ['', '']
  const payload = createPayload(app)
  const asking = poll(async () => {
    try {
      event = await app.api.event(eventId)
      ;[problem, refused] = ['', '']
      if (webhooks.size === 0)
        webhooks = new Map((await app.api.overview()).data.map((webhook) => [webhook.id, webhook]))
    } catch (error) {
      const isRefused = error instanceof ApiProblem && [403, 404].includes(error.problem.status)
      refused = isRefused ? inWords(error) : ''
      problem = isRefused ? '' : inWords(error)
      throw error
    } finally {
      app.update()
    }
  }, EVERY_MS)

  return {
    get title() {
      return event === null ? 'Event' : `${event.eventKey} · Event`
    },
    stop: asking.stop,
    render: () =>
      html`<p class="crumbs"><a href=${eventsLink()}>Events</a></p>
        ${staleNote(app, asking, problem)} ${event === null ? missing(refused) : body(event)}`,
  }

  /** @param {EventDetail} shown */
  function body(shown) {
    const { id, eventKey, createdAt, traceId, deliveries, payloadErased, payloadText } = shown
    return html`<div class="heading">
        <div>
          <h1 tabindex="-1"><span class="mono">${eventKey}</span></h1>
          <p class="faint">published ${app.times.at(createdAt)}</p>
        </div>
        <div class="buttons">${eraseButton(app, id, payloadErased, asking.refresh)}</div>
      </div>
      ${payloadErased === null ? nothing : erasedNote(app, payloadErased)}
      <div class="event">
        <section class="card" aria-label="Deliveries">
          <h2>${plural(deliveries.length, 'delivery')}</h2>
          ${deliveries.length === 0 ? html`<p class="faint">No webhook was subscribed.</p>` : table(shown)}
        </section>
        <section class="card" aria-label="Ids">
          <h2>Ids</h2>
          <dl class="pairs ids">
            ${idRow(app, 'Event', 'event id', id)} ${idRow(app, 'Trace', 'trace id', traceId)}
          </dl>
        </section>
        ${
          payloadErased !== null
            ? nothing
            : html`<section class="card whole">
                ${
                  payloadText === null
                    ? html`<p class="hint">
                        The payload is only for members with the permission of ${eventKey}.
                      </p>`
                    : payload.render(payloadText)
                }
              </section>`
        }
      </div>`
  }

  /** @param {EventDetail} shown */
  function table({ deliveries }) {
    return html`<table class="events-table" role="table">
      <caption class="unseen">
        Deliveries of the event
      </caption>
      <thead role="rowgroup">
        <tr role="row">
          <th role="columnheader" scope="col">Webhook</th>
          <th role="columnheader" scope="col">State</th>
          <th role="columnheader" scope="col" class="number">Attempts</th>
        </tr>
      </thead>
      <tbody role="rowgroup">
        ${repeat(
          deliveries,
          ({ id }) => id,
          ({ id, webhookId, state, attemptCount, nextAttemptAt }) =>
            html`<tr role="row">
              <td role="cell" class="event-key">
                <a href=${deliveryLink(webhookId, id)}>${nameFor(webhookId)}</a>
              </td>
              <td role="cell" class="state">
                ${stateMark(state)}
                ${
                  state === 'waiting' && nextAttemptAt !== null
                    ? html`<span class="faint">${app.times.until(nextAttemptAt)}</span>`
                    : nothing
                }
              </td>
              <td role="cell" class="number" data-label="Attempts">${attemptCount}</td>
            </tr>`,
        )}
      </tbody>
    </table>`
  }

  /** @param {string} webhookId */
  function nameFor(webhookId) {
    const webhook = webhooks.get(webhookId)
    return webhook === undefined ? `Webhook ${shortId(webhookId)}` : nameOf(webhook)
  }
}

/** @param {string} refused */
function missing(refused) {
  return refused === ''
    ? html`<h1 tabindex="-1">Event</h1>
        <p class="faint">Loading …</p>`
    : html`<section class="empty">
        <h1 tabindex="-1">This event cannot be shown</h1>
        <p>${refused}</p>
      </section>`
}

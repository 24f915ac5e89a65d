import { html, nothing } from '../lib/html.js'
import { deliveryLink, placeLink } from '../lib/links.js'
import { may, READ } from '../lib/permissions.js'
import { poll } from '../lib/poll.js'
import { plural } from '../lib/times.js'
import { createPayload } from '../parts/payload.js'
import { staleNote } from '../parts/problem.js'
import { stateMark } from '../parts/state-mark.js'
import { renderTable } from '../parts/listing.js'
import { erasedNote, eraseButton, idRow, renderMissing } from './delivery-parts.js'
import { nameFor } from './delivery-table.js'

/** @import { Column } from '../parts/listing.js' */
/** @import { App, EventDetail, View } from '../types.d.ts' */

const EVERY_MS = 3_000

/** Deliveries that the API shows of an event at most. */
const MAX_SHOWN = 1_000

/**
 * One event: its payload, and the delivery to each webhook.
 * @param {App} app
 * @param {string} eventId
 * @returns {View}
 */
export function createEventView(app, eventId) {
  /** @type {EventDetail | null} */
  let event = null
  const payload = createPayload(app)
  const polling = poll(
    app,
    async () => {
      const isFirst = event === null
      event = await app.api.event(eventId)
      if (may(app.session, READ) && (isFirst || app.webhooks === null))
        app.webhooks = (await app.api.overview()).data
    },
    EVERY_MS,
  )

  /** @type {Column<EventDetail['deliveries'][number]>[]} */
  const columns = [
    {
      head: 'Webhook',
      className: 'event-key',
      cell: ({ id, webhookId }) =>
        html`<a href=${deliveryLink(webhookId, id)}>${nameFor(app, webhookId)}</a>`,
    },
    {
      head: 'State',
      className: 'state',
      cell: ({ state, nextAttemptAt }) =>
        html`${stateMark(state)}
        ${
          state === 'waiting' && nextAttemptAt !== null
            ? html`<span class="faint">${app.times.until(nextAttemptAt)}</span>`
            : nothing
        }`,
    },
    { head: 'Attempts', className: 'number', label: 'Attempts', cell: ({ attemptCount }) => attemptCount },
  ]

  return {
    get title() {
      return event === null ? 'Event' : `${event.eventKey} · Event`
    },
    stop: polling.stop,
    render: () =>
      html`<p class="crumbs"><a href=${placeLink('events')}>Events</a></p>
        ${
          event === null
            ? renderMissing(app, polling.answers, { title: 'Event', refused: 'This event cannot be shown' })
            : html`${staleNote(app, polling.answers)} ${body(event)}`
        }`,
  }

  /** @param {EventDetail} shown */
  function body(shown) {
    const { id, eventKey, createdAt, traceId, deliveries, payloadErased, payloadText } = shown
    return html`<div class="heading">
        <div>
          <h1 tabindex="-1"><span class="mono">${eventKey}</span></h1>
          <p class="faint">published ${app.times.at(createdAt)}</p>
        </div>
        <div class="buttons">${eraseButton(app, id, payloadErased, polling.refresh)}</div>
      </div>
      ${payloadErased === null ? nothing : erasedNote(app, payloadErased)}
      <div class="event">
        <section class="card" aria-label="Deliveries">
          <h2>
            ${deliveries.length < MAX_SHOWN ? '' : 'The newest '}${plural(deliveries.length, 'delivery')}
          </h2>
          ${deliveries.length === 0 ? html`<p class="faint">No webhook was subscribed.</p>` : renderTable({ caption: 'Deliveries of the event', columns, rows: deliveries })}
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
}

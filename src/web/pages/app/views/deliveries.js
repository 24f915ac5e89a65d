import { html, nothing, repeat } from '../lib/html.js'
import { deliveryLink } from '../lib/links.js'
import { inWords, problemNote } from '../parts/problem.js'
import { stateInWords, stateMark } from '../parts/state-mark.js'

/** @import { App, Delivery, DeliveryState } from '../types.d.ts' */

const PAGE = '20'

/** @type {readonly DeliveryState[]} */
const STATES = ['waiting', 'failed', 'in_progress', 'pending', 'completed', 'stopped']

/**
 * A webhook's deliveries, newest first, by state and in pages.
 * @param {App} app
 * @param {string} webhookId
 */
export function createDeliveries(app, webhookId) {
  /** @type {Delivery[] | null} */
  let page = null
  /** @type {string | null} */
  let next = null
  /** @type {DeliveryState | ''} */
  let state = ''
  /** Cursors of the pages up to the one that is shown; the first page has none. @type {string[]} */
  let trail = []
  let problem = ''

  const refresh = async () => {
    const cursor = trail.at(-1)
    const asked = { state, cursor }
    try {
      const found = await app.api.deliveries(webhookId, {
        limit: PAGE,
        ...(state === '' ? {} : { state }),
        ...(cursor === undefined ? {} : { cursor }),
      })
      // An answer to what was asked for before the last click comes too late.
      if (asked.state !== state || asked.cursor !== trail.at(-1)) return
      page = found.data
      next = found.nextCursor
      problem = ''
    } catch (error) {
      problem = inWords(error)
    }
    app.update()
  }
  /** @param {() => void} change */
  const turn = (change) => () => {
    change()
    void refresh()
  }
  /** @param {Event} event */
  const choose = (event) => {
    state = /** @type {DeliveryState | ''} */ (/** @type {HTMLSelectElement} */ (event.currentTarget).value)
    trail = []
    page = null
    app.update()
    void refresh()
  }
  const newer = turn(() => {
    trail = trail.slice(0, -1)
  })
  const older = turn(() => {
    if (next !== null) trail = [...trail, next]
  })

  return {
    refresh,
    render: () =>
      html`<section class="card deliveries">
        <div class="bar">
          <h2>Deliveries</h2>
          <label class="inline"
            >State
            <select @change=${choose}>
              <option value="">All</option>
              ${STATES.map((name) => html`<option value=${name} ?selected=${name === state}>${stateInWords(name)}</option>`)}
            </select></label
          >
        </div>
        ${problemNote(problem)} ${page === null ? html`<p class="faint">Loading …</p>` : nothing}
        ${page?.length === 0 ? html`<p class="faint">${state === '' ? 'No deliveries yet.' : 'None in this state.'}</p>` : nothing}
        <ul class="rows" aria-label="Deliveries">
          ${repeat(
            page ?? [],
            ({ id }) => id,
            (delivery) => row(app, webhookId, delivery),
          )}
        </ul>
        ${
          trail.length > 0 || next !== null
            ? html`<nav class="buttons between" aria-label="Pages of deliveries">
                <button type="button" ?disabled=${trail.length === 0} @click=${newer}>Newer</button>
                <span class="faint">Page ${trail.length + 1}</span>
                <button type="button" ?disabled=${next === null} @click=${older}>Older</button>
              </nav>`
            : nothing
        }
      </section>`,
  }
}

/**
 * @param {App} app
 * @param {string} webhookId
 * @param {Delivery} delivery
 */
function row({ times, session }, webhookId, delivery) {
  const { id, eventKey, state, attemptCount, nextAttemptAt, createdAt } = delivery
  const most = session.retryWaitsMs.length + 1
  return html`<li>
    <a href=${deliveryLink(webhookId, id)}><span class="mono">${eventKey}</span></a>
    ${stateMark(state)}
    <span class="faint"
      >${attemptCount <= most ? `attempt ${String(attemptCount)} of ${String(most)}` : `${String(attemptCount)} attempts`}</span
    >
    <span class="faint"
      >${state === 'waiting' && nextAttemptAt !== null ? html`next ${times.until(nextAttemptAt)}` : nothing}</span
    >
    <span class="when">${times.ago(createdAt)}</span>
  </li>`
}

import { html, live, nothing, repeat } from '../lib/html.js'
import { deliveryLink } from '../lib/links.js'
import { milliseconds } from '../lib/times.js'
import { nameOf } from '../parts/address.js'
import { inWords } from '../parts/problem.js'
import { stateMark } from '../parts/state-mark.js'
import { openRetry } from './delivery-parts.js'

/** @import { App, Delivery } from '../types.d.ts' */

/**
 * Which rows are selected.
 * @typedef {{
 *   has(id: string): boolean, isAll: boolean, isMixed: boolean, isWhole: boolean,
 *   toggle: (id: string) => void, togglePage: () => void,
 * }} Selection
 */

/** A double click is one request, however fast the first one was answered. */
const ACT_AGAIN_AFTER_MS = 1_000

/** The last characters of an id are random. */
const SHORT_ID_LENGTH = 8

const RETRIED = ['waiting', 'failed', 'stopped']

/**
 * @param {App} app
 * @param {string | null} webhookId null: of all webhooks, which are named in a column of their own
 * @param {Selection | null} selection null for a member who may not act on deliveries
 * @param {() => Promise<void>} refresh
 * @param {{ open(delivery: Delivery, event: Event): void, shownId: string | null }} panel where deliveries are opened
 */
export function createDeliveryTable(app, webhookId, selection, refresh, panel) {
  const maxAttempts = app.session.retryWaitsMs.length + 1
  /** @type {Set<string>} */
  const acting = new Set()

  /** @param {Delivery} delivery */
  const retry = async (delivery) => {
    const { id } = delivery
    if (acting.has(id)) return
    acting.add(id)
    app.update()
    const pause = new Promise((resolve) => setTimeout(resolve, ACT_AGAIN_AFTER_MS))
    try {
      await app.api.retryOne(delivery.webhookId, delivery.id)
      app.showMessage('It is attempted at once.')
    } catch (error) {
      app.showMessage(inWords(error))
    }
    await Promise.all([refresh(), pause])
    acting.delete(id)
    app.update()
  }

  /** @param {Delivery} delivery */
  const row = (delivery) => {
    const { id, eventKey, state, attemptCount, nextAttemptAt, pausedSince, createdAt, latestAttempt } =
      delivery
    const short = shortId(id)
    const isSelected = selection?.has(id) === true
    // The roles stay where a narrow window lays the rows out as cards.
    return html`<tr role="row" class=${rowClass(isSelected, panel.shownId === id)}>
      ${
        selection === null
          ? nothing
          : html`<td role="cell" class="select">
              <input
                type="checkbox"
                aria-label="Select delivery ${short}"
                .checked=${live(isSelected)}
                ?disabled=${selection.isAll}
                @change=${() => selection.toggle(id)}
              />
            </td>`
      }
      <td role="cell" class="event-key">
        <a
          class="mono"
          href=${deliveryLink(delivery.webhookId, id)}
          aria-current=${panel.shownId === id ? 'true' : 'false'}
          @click=${(/** @type {Event} */ event) => panel.open(delivery, event)}
          >${eventKey}</a
        >
      </td>
      ${webhookId === null ? html`<td role="cell" class="webhook-name">${nameFor(delivery.webhookId)}</td>` : nothing}
      <td role="cell" class="state">
        ${stateMark(state)}
        ${
          state === 'waiting' && nextAttemptAt !== null
            ? html`<span class="faint next-attempt"
                >${pausedSince === null ? app.times.until(nextAttemptAt) : 'paused in Temporal'}</span
              >`
            : nothing
        }
        ${
          state === 'pending' && pausedSince !== null
            ? html`<span class="faint next-attempt">paused in Temporal</span>`
            : nothing
        }
      </td>
      <td role="cell" class="attempt number" data-label="Attempt">
        ${attemptCount > maxAttempts ? attemptCount : `${String(attemptCount)} of ${String(maxAttempts)}`}
      </td>
      <td role="cell" class="code number" data-label="Status">${latestAttempt?.statusCode ?? '–'}</td>
      <td role="cell" class="duration number" data-label="Duration">
        ${latestAttempt === null ? '–' : milliseconds(latestAttempt.durationMs)}
      </td>
      <td role="cell" class="id" data-label="Id"><span class="mono" title=${id}>${short}</span></td>
      <td role="cell" class="when" data-label="Published">${app.times.ago(createdAt)}</td>
      <td role="cell" class="last-error" title=${latestAttempt?.error ?? ''}>
        ${latestAttempt?.error ?? ''}
      </td>
      ${selection === null ? nothing : html`<td role="cell" class="act">${retryButton(delivery, short)}</td>`}
    </tr>`
  }
  /**
   * @param {Delivery} delivery
   * @param {string} short
   */
  const retryButton = (delivery, short) => {
    const { id, state } = delivery
    return RETRIED.includes(state) || acting.has(id)
      ? html`<button
          type="button"
          class="quiet"
          aria-label="Retry delivery ${short}"
          ?disabled=${acting.has(id)}
          @click=${() => openRetry(app, delivery, () => retry(delivery))}
        >
          Retry
        </button>`
      : nothing
  }

  /** @param {string} id */
  const nameFor = (id) => {
    const webhook = app.webhooks?.find((candidate) => candidate.id === id)
    return webhook === undefined ? `Webhook ${shortId(id)}` : nameOf(webhook)
  }

  return {
    /** @param {readonly Delivery[]} rows */
    render: (rows) =>
      html`<table class="deliveries-table" role="table">
        <caption class="unseen">
          Deliveries, newest first
        </caption>
        <thead role="rowgroup">
          <tr role="row">
            ${
              selection === null
                ? nothing
                : html`<th role="columnheader" scope="col" class="select">
                    <input
                      type="checkbox"
                      aria-label="Select this page"
                      .checked=${live(selection.isWhole)}
                      .indeterminate=${live(selection.isMixed)}
                      @change=${selection.togglePage}
                    />
                  </th>`
            }
            <th role="columnheader" scope="col" class="event-key">Event key</th>
            ${webhookId === null ? html`<th role="columnheader" scope="col" class="webhook-name">Webhook</th>` : nothing}
            <th role="columnheader" scope="col" class="state">State</th>
            <th role="columnheader" scope="col" class="attempt number">Attempt</th>
            <th role="columnheader" scope="col" class="code number">Status</th>
            <th role="columnheader" scope="col" class="duration number">Duration</th>
            <th role="columnheader" scope="col" class="id">Id</th>
            <th role="columnheader" scope="col" class="when">Published</th>
            <th role="columnheader" scope="col" class="last-error">Last error</th>
            ${
              selection === null
                ? nothing
                : html`<th role="columnheader" scope="col" class="act">
                    <span class="unseen">Action</span>
                  </th>`
            }
          </tr>
        </thead>
        <tbody role="rowgroup">
          ${repeat(rows, ({ id }) => id, row)}
        </tbody>
      </table>`,
  }
}

/**
 * @param {boolean} isSelected
 * @param {boolean} isShown
 */
function rowClass(isSelected, isShown) {
  return `${isSelected ? 'selected' : ''} ${isShown ? 'shown' : ''}`
}

/** @param {string} id */
export function shortId(id) {
  return `…${id.slice(-SHORT_ID_LENGTH)}`
}

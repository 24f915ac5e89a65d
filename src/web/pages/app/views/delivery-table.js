import { html, live, nothing } from '../lib/html.js'
import { deliveryLink } from '../lib/links.js'
import { milliseconds } from '../lib/times.js'
import { nameOf } from '../parts/address.js'
import { stateMark } from '../parts/state-mark.js'
import { ACTION, renderTable } from '../parts/listing.js'
import { createActs, openRetry } from './delivery-parts.js'

/** @import { Column } from '../parts/listing.js' */
/** @import { App, Delivery } from '../types.d.ts' */

/**
 * Which rows are selected.
 * @typedef {{
 *   has(id: string): boolean, isAll: boolean, isMixed: boolean, isWhole: boolean,
 *   toggle: (id: string) => void, togglePage: () => void,
 * }} Selection
 */

/** The last characters of an id are random. */
const SHORT_ID_LENGTH = 8

/** Whether the API would retry it. @param {Delivery} delivery */
const isRetriable = ({ state, stopReason, isTest }) =>
  ['waiting', 'failed', 'stopped'].includes(state) && stopReason !== 'payload_erased' && !isTest

/**
 * @param {App} app
 * @param {string | null} webhookId null: of all webhooks, which are named in a column of their own
 * @param {Selection | null} selection null for a member who may not act on deliveries
 * @param {() => Promise<void>} refresh
 * @param {{ open(delivery: Delivery, event: Event): void, shownId: string | null }} panel where deliveries are opened
 */
export function createDeliveryTable(app, webhookId, selection, refresh, panel) {
  const maxAttempts = app.session.retryWaitsMs.length + 1
  const { isActing, act } = createActs(app, refresh)
  /** @param {Delivery} delivery */
  const retry = ({ id, webhookId: of }) => act(id, () => app.api.retryOne(of, id))

  /** @param {Delivery} delivery */
  const retryButton = (delivery) => {
    const { id } = delivery
    return isRetriable(delivery) || isActing(id)
      ? html`<button
          type="button"
          class="quiet"
          aria-label="Retry delivery ${shortId(id)}"
          ?disabled=${isActing(id)}
          @click=${() => openRetry(app, delivery, () => retry(delivery))}
        >
          Retry
        </button>`
      : nothing
  }

  /** @param {Delivery} delivery */
  const next = ({ state, nextAttemptAt, pausedSince }) => {
    if (state !== 'pending' && (state !== 'waiting' || nextAttemptAt === null)) return nothing
    const words =
      pausedSince === null ? nextAttemptAt && app.times.until(nextAttemptAt) : 'paused in Temporal'
    return words === null ? nothing : html`<span class="faint next-attempt">${words}</span>`
  }

  /** Built anew with each rendering: what is selected is in it. @returns {Column<Delivery>[]} */
  const columns = () => [
    ...(selection === null ? [] : [selectColumn(selection)]),
    {
      head: 'Event key',
      className: 'event-key',
      cell: (delivery) =>
        html`<a
          class="mono"
          href=${deliveryLink(delivery.webhookId, delivery.id)}
          aria-current=${panel.shownId === delivery.id ? 'true' : 'false'}
          @click=${(/** @type {Event} */ event) => panel.open(delivery, event)}
          >${delivery.eventKey}</a
        >`,
    },
    ...(webhookId === null ? [webhookColumn] : []),
    {
      head: 'State',
      className: 'state',
      cell: (delivery) => html`${stateMark(delivery.state)} ${next(delivery)}`,
    },
    {
      head: 'Attempt',
      className: 'attempt number',
      label: 'Attempt',
      cell: ({ attemptCount, isTest }) =>
        isTest || attemptCount > maxAttempts
          ? attemptCount
          : `${String(attemptCount)} of ${String(maxAttempts)}`,
    },
    {
      head: 'Status',
      className: 'code number',
      label: 'Status',
      cell: ({ latestAttempt }) => latestAttempt?.statusCode ?? '–',
    },
    {
      head: 'Duration',
      className: 'duration number',
      label: 'Duration',
      cell: ({ latestAttempt }) => (latestAttempt === null ? '–' : milliseconds(latestAttempt.durationMs)),
    },
    {
      head: 'Id',
      className: 'id',
      label: 'Id',
      cell: ({ id }) => html`<span class="mono" title=${id}>${shortId(id)}</span>`,
    },
    {
      head: 'Published',
      className: 'when',
      label: 'Published',
      cell: ({ createdAt }) => app.times.ago(createdAt),
    },
    {
      head: 'Last error',
      className: 'last-error',
      cell: ({ latestAttempt }) => latestAttempt?.error ?? '',
      tooltip: ({ latestAttempt }) => latestAttempt?.error ?? '',
    },
    ...(selection === null ? [] : [{ head: ACTION, className: 'act', cell: retryButton }]),
  ]
  /** @type {Column<Delivery>} */
  const webhookColumn = {
    head: 'Webhook',
    className: 'webhook-name',
    cell: ({ webhookId: id }) => nameFor(app, id),
  }

  return {
    /** @param {readonly Delivery[]} rows */
    render: (rows) =>
      renderTable({
        caption: 'Deliveries, newest first',
        className: 'deliveries-table',
        columns: columns(),
        rows,
        rowClass: ({ id }) =>
          `${selection?.has(id) === true ? 'selected' : ''} ${panel.shownId === id ? 'shown' : ''}`,
      }),
  }
}

/**
 * @param {Selection} selection
 * @returns {Column<Delivery>}
 */
function selectColumn(selection) {
  return {
    head: html`<input
      type="checkbox"
      aria-label="Select this page"
      .checked=${live(selection.isWhole)}
      .indeterminate=${live(selection.isMixed)}
      @change=${selection.togglePage}
    />`,
    className: 'select',
    cell: ({ id }) =>
      html`<input
        type="checkbox"
        aria-label="Select delivery ${shortId(id)}"
        .checked=${live(selection.has(id))}
        ?disabled=${selection.isAll}
        @change=${() => selection.toggle(id)}
      />`,
  }
}

/** @param {string} id */
export function shortId(id) {
  return `…${id.slice(-SHORT_ID_LENGTH)}`
}

/**
 * What people call a webhook that a delivery names by its id.
 * @param {Pick<App, 'webhooks'>} app
 * @param {string} id
 */
export function nameFor({ webhooks }, id) {
  const webhook = webhooks?.find((candidate) => candidate.id === id)
  return webhook === undefined ? `Webhook ${shortId(id)}` : nameOf(webhook)
}

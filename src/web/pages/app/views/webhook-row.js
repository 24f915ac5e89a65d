import { html, nothing } from '../lib/html.js'
import { deliveryLink, webhookLink } from '../lib/links.js'
import { milliseconds, plural, share } from '../lib/times.js'
import { nameOf, shortAddress } from '../parts/address.js'
import { renderSparkline } from '../parts/chart.js'
import { backlogInWords, icon, isBackedUp, stateInWords, webhookMark } from '../parts/state-mark.js'
import { enabledSwitch } from './enabled-switch.js'

/** @import { Activity, App, DeliveryState, Overview, Template } from '../types.d.ts' */

/** Where there is no name, the URL has the room of both. */
const LONG_ADDRESS = 58

/**
 * A webhook at a glance, in one row.
 * @param {App} app
 * @param {Overview} webhook
 * @param {Activity['buckets'] | undefined} buckets undefined until they are known
 * @param {() => Promise<void>} refresh
 * @returns {Template}
 */
export function renderWebhookRow(app, webhook, buckets, refresh) {
  const { id, url, description, waitingForRetry, permanentlyFailed } = webhook
  return html`<tr role="row" class=${webhook.openIncident === null ? '' : webhook.status}>
    <td role="cell" class="status-cell">${webhookMark(webhook, app.times, true)}</td>
    ${
      description === ''
        ? html`<th role="rowheader" scope="row" colspan="2">
            <a href=${webhookLink(id)}>${shortAddress(url, LONG_ADDRESS)}</a>
          </th>`
        : html`<th role="rowheader" scope="row">
              <a href=${webhookLink(id)} title=${description}>${nameOf(webhook)}</a>
            </th>
            <td role="cell" class="url-cell">${shortAddress(url)}</td>`
    }
    ${queue(webhook)} ${count('waiting', waitingForRetry, 'warn')}
    ${count('failed', permanentlyFailed, 'bad')}
    <td role="cell" class="recent-cell">${recent(webhook)}</td>
    <td role="cell" class="latest-cell">${latest(app, webhook)}</td>
    <td role="cell" class="activity-cell">${buckets === undefined ? nothing : renderSparkline(buckets)}</td>
    <td role="cell" class="switch-cell">${enabledSwitch(app, webhook, refresh)}</td>
  </tr>`
}

/**
 * @param {DeliveryState} state said where there is no column with a heading
 * @param {number} value
 * @param {string} tone
 * @param {string} [title]
 */
function count(state, value, tone, title = '') {
  return html`<td role="cell" class="count-cell ${value > 0 ? tone : 'zero'}" title=${title}>
    ${value.toLocaleString()} <span class="label">${stateInWords(state).toLowerCase()}</span>
  </td>`
}

/**
 * Share of attempts that succeeded, and how long 95 of 100 took at most.
 * @param {Overview} webhook
 * @returns {Template}
 */
function recent({ recent: { attempts, succeeded, p95DurationMs } }) {
  if (p95DurationMs === null) return html`<span class="faint">–</span>`
  const words = `${share(succeeded, attempts)} · ${milliseconds(p95DurationMs)}`
  const title = `Of the latest ${plural(attempts, 'attempt')} within 24 hours, ${share(succeeded, attempts)} succeeded; 95 of 100 took ${milliseconds(p95DurationMs)} at most`
  return html`<span title=${title}>${words}</span>`
}

/**
 * Deliveries that wait for their first attempt. The status says for how long where that is unusual.
 * @param {Overview} webhook
 */
function queue(webhook) {
  const isLong = isBackedUp(webhook)
  const title = isLong ? backlogInWords(webhook) : ''
  return count('pending', webhook.waitingForFirstAttempt, isLong ? 'warn' : '', title)
}

/**
 * @param {App} app
 * @param {Overview} webhook
 * @returns {Template}
 */
function latest({ times }, { id, latestAttempt }) {
  if (latestAttempt === null) return html`<span class="faint">none so far</span>`
  const { outcome, attemptedAt, statusCode, error, deliveryId } = latestAttempt
  const isGood = outcome === 'succeeded'
  return html`<a href=${deliveryLink(id, deliveryId)} class=${isGood ? 'good' : 'bad'} title=${error ?? ''}
      >${icon(isGood ? 'good' : 'bad')} ${statusCode === null ? 'no answer' : `HTTP ${String(statusCode)}`}</a
    >
    <span class="faint">${times.ago(attemptedAt)}</span>`
}

import { html, nothing, repeat } from '../lib/html.js'
import { BRAND } from '../lib/theme.js'
import { placeLink, webhookLink, deliveryLink } from '../lib/links.js'
import { MANAGE, may } from '../lib/permissions.js'
import { poll } from '../lib/poll.js'
import { plural, milliseconds, share } from '../lib/times.js'
import { nameOf, shortAddress } from '../parts/address.js'
import { createFinder } from '../parts/filter-fields.js'
import { isBackedUp, stateInWords, backlogInWords, icon, webhookMark } from '../parts/state-mark.js'
import { loading, renderHeading } from '../parts/listing.js'
import { staleNote } from '../parts/problem.js'
import { forceAllAction, openAction } from './actions.js'
import { openWebhookForm } from './webhook-form.js'
import { renderSparkline } from '../parts/chart.js'
import { enabledSwitch } from './enabled-switch.js'

/** @import { Activity, App, DeliveryState, Overview, Template, View } from '../types.d.ts' */

const EVERY_MS = 3_000
const ACTIVITY_EVERY_MS = 60_000

/**
 * Shows every webhook of the organisation and its state, one to a row, and refreshes them.
 * @param {App} app
 * @returns {View}
 */
export function createWebhookList(app) {
  const finder = createFinder(app, {
    label: 'Search webhooks',
    placeholder: 'Name, URL, id or event key',
  })
  /** By the id of their webhook. @type {Map<string, Activity['buckets']>} */
  let activity = new Map()
  const polling = poll(
    app,
    async () => {
      app.webhooks = (await app.api.overview()).data
    },
    EVERY_MS,
  )
  const pollingActivity = poll(
    app,
    async () => {
      const { data } = await app.api.activities()
      activity = new Map(data.map(({ webhookId, buckets }) => [webhookId, buckets]))
    },
    ACTIVITY_EVERY_MS,
  )
  const mayManage = may(app.session, MANAGE)
  const create = () => openWebhookForm(app, null, (id) => app.go(webhookLink(id)))

  return {
    title: 'Webhooks',
    stop() {
      polling.stop()
      pollingActivity.stop()
    },
    render() {
      const { webhooks } = app
      const hasAny = webhooks !== null && webhooks.length > 0
      return html`${renderHeading(
        'Webhooks',
        webhooks === null ? '' : summary(webhooks),
        hasAny
          ? html`${finder.render()} <a href=${placeLink('live')}>Live</a> ${mayManage ? buttons() : nothing}`
          : nothing,
      )}
      ${staleNote(app, polling.answers)} ${webhooks === null ? loading(polling.answers) : nothing}
      ${webhooks?.length === 0 ? empty(mayManage, create) : nothing} ${hasAny ? table(webhooks) : nothing}`
    },
  }

  function buttons() {
    return html`<a href=${placeLink('retries')}>Retry jobs</a>
      <button type="button" @click=${() => openAction(app, forceAllAction(app), polling.refresh)}>
        Force retry all
      </button>
      <button type="button" class="primary" @click=${create}>New webhook</button>`
  }

  /** @param {readonly Overview[]} webhooks */
  function table(webhooks) {
    const found = inOrder(webhooks).filter((webhook) => finder.finds(textOf(webhook)))
    if (found.length === 0)
      return html`<p class="faint" role="status">
        No webhook has “${finder.search}” in its name, URL, id or keys.
      </p>`
    // The roles stay where a narrow window lays the rows out as blocks.
    return html`<table class="list" role="table" aria-label="Webhooks">
      <thead role="rowgroup">
        <tr role="row">
          <th role="columnheader" class="status-column">Status</th>
          <th role="columnheader">Webhook</th>
          <th role="columnheader" class="url-column">URL</th>
          <th role="columnheader" class="count-column">${stateInWords('pending')}</th>
          <th role="columnheader" class="count-column">${stateInWords('waiting')}</th>
          <th role="columnheader" class="count-column">${stateInWords('failed')}</th>
          <th role="columnheader" class="recent-column" title="Of the latest 200 attempts within 24 hours">
            Success, p95
          </th>
          <th role="columnheader" class="latest-column">Latest attempt</th>
          <th role="columnheader" class="activity-column">24 hours</th>
          <th role="columnheader" class="switch-column">Deliver</th>
        </tr>
      </thead>
      <tbody role="rowgroup">
        ${repeat(
          found,
          ({ id }) => id,
          (webhook) => renderWebhookRow(app, webhook, activity.get(webhook.id), polling.refresh),
        )}
      </tbody>
    </table>`
  }
}

/**
 * The order of urgency: failing webhooks, those with a permanently failed delivery before others, then
 * degraded ones, then those whose first attempts are held up, then all others; each by name.
 * @param {readonly Overview[]} webhooks
 */
function inOrder(webhooks) {
  return [...webhooks].sort(
    (one, other) => urgency(one) - urgency(other) || nameOf(one).localeCompare(nameOf(other), 'en'),
  )
}

/** @param {Overview} webhook lower is more urgent */
function urgency(webhook) {
  const { status, openIncident } = webhook
  if (openIncident !== null)
    return (status === 'failing' ? 0 : 2) + (openIncident.exhaustedAt === null ? 1 : 0)
  if (isBackedUp(webhook)) return 4
  return status === 'degraded' ? 5 : 6
}

/** @param {Overview} webhook */
function textOf({ id, url, name, description, subscribedEventKeys }) {
  return [description, name, url, id, ...subscribedEventKeys].join(' ')
}

/** @param {readonly Overview[]} webhooks */
function summary(webhooks) {
  const count = (/** @type {Overview['status']} */ wanted) =>
    webhooks.filter(({ status }) => status === wanted).length
  const [failing, degraded] = [count('failing'), count('degraded')]
  if (webhooks.length === 0) return ''
  const words = failing === 0 ? 'none failing' : `${String(failing)} failing`
  return `${plural(webhooks.length, 'webhook')}, ${words}${degraded === 0 ? '' : `, ${String(degraded)} degraded`}`
}

/**
 * @param {boolean} mayManage
 * @param {() => void} create
 */
function empty(mayManage, create) {
  return html`<section class="empty">
    <img src=${BRAND.logo} alt="" width="56" height="56" />
    <h2>No webhooks yet</h2>
    <p>A webhook sends events of your organisation to an address of yours, as they happen.</p>
    ${
      mayManage
        ? html`<button type="button" class="primary" @click=${create}>Create the first one</button>`
        : html`<p class="faint">A member with the permission <code>webhook:manage</code> can create one.</p>`
    }
  </section>`
}

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
function renderWebhookRow(app, webhook, buckets, refresh) {
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

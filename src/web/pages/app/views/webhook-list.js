import { BRAND, html, nothing, repeat } from '../lib/html.js'
import { placeLink, webhookLink } from '../lib/links.js'
import { MANAGE, may } from '../lib/permissions.js'
import { poll } from '../lib/poll.js'
import { plural } from '../lib/times.js'
import { nameOf } from '../parts/address.js'
import { createFinder } from '../parts/finder.js'
import { isBackedUp, stateInWords } from '../parts/state-mark.js'
import { loading, renderHeading } from '../parts/listing.js'
import { staleNote } from '../parts/problem.js'
import { forceAllAction, openAction } from './actions.js'
import { openWebhookForm } from './webhook-form.js'
import { renderWebhookRow } from './webhook-row.js'

/** @import { Activity, App, Overview, View } from '../types.d.ts' */

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

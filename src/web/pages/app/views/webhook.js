import { html, nothing } from '../lib/html.js'
import { addressed, webhookLink } from '../lib/links.js'
import { MANAGE, may } from '../lib/permissions.js'
import { poll } from '../lib/poll.js'
import { address, nameOf, shortAddress } from '../parts/address.js'
import { CRUMBS, loading } from '../parts/listing.js'
import { staleNote } from '../parts/problem.js'
import { webhookMark } from '../parts/state-mark.js'
import { createDeliveries } from './deliveries.js'
import { enabledSwitch } from './enabled-switch.js'
import { createIncidents, renderHold, renderOpenIncident } from './incidents.js'
import { createLive } from './live.js'
import { createTestSender } from './delivery-parts.js'
import { createWebhookOverview } from './webhook-overview.js'
import { createWebhookSettings } from './webhook-settings.js'

/** @import { App, Overview, Tab, Template, View } from '../types.d.ts' */
/** @import { TestSender } from './delivery-parts.js' */

const MAX_HEADING_LENGTH = 90

const EVERY_MS = 2_000

/** @type {readonly { name: string, title: string, create(app: App, id: string): Tab }[]} */
const TABS = [
  { name: '', title: 'Overview', create: createWebhookOverview },
  { name: 'deliveries', title: 'Deliveries', create: createDeliveries },
  { name: 'live', title: 'Live', create: createLive },
  { name: 'incidents', title: 'Incidents', create: createIncidents },
  { name: 'settings', title: 'Settings', create: createWebhookSettings },
]

/**
 * One webhook: how it stands, what it did, and what can be done, in tabs.
 * @param {App} app
 * @param {string} id
 * @returns {View}
 */
export function createWebhookView(app, id) {
  const shownTab = TABS.find(({ name }) => name === addressed('tab'))
  const tab = shownTab?.create(app, id)
  // Elsewhere the room belongs to the tab: the heading says in short how the webhook stands.
  const isOverview = shownTab?.name === ''
  const found = () => app.webhooks?.find((candidate) => candidate.id === id) ?? null
  let webhook = found()
  let isDeleted = false
  const tests = createTestSender(app)
  const polling = poll(
    app,
    async () => {
      app.webhooks = (await app.api.overview()).data
      webhook = found()
      isDeleted = webhook === null
      if (webhook !== null) await tab?.refresh?.(webhook)
    },
    EVERY_MS,
  )

  return {
    get title() {
      return [shownTab?.title ?? 'No such tab', webhook === null ? 'Webhook' : nameOf(webhook)].join(' · ')
    },
    stop() {
      polling.stop()
      tab?.stop?.()
    },
    render() {
      if (isDeleted || polling.answers.status === 404) return gone()
      return html`${CRUMBS}
      ${webhook === null ? nothing : heading(app, webhook, isOverview, polling.refresh, tests)}
      ${staleNote(app, polling.answers)}
      ${
        webhook === null
          ? html`<h1 tabindex="-1">Webhook</h1>
              ${loading(polling.answers)}`
          : html`${renderHold(app, webhook)} ${isOverview ? renderOpenIncident(app, webhook) : nothing}
              ${tabs(webhook)}
              <div class="tab">
                ${tab === undefined ? noSuchTab() : tab.render(webhook, polling.refresh)}
              </div>`
      }`
    },
  }

  /** @param {Overview} shown */
  function tabs(shown) {
    return html`<nav class="tabs" aria-label=${nameOf(shown)}>
      ${TABS.map(
        ({ name, title }) =>
          html`<a href=${webhookLink(id, name)} aria-current=${name === shownTab?.name ? 'page' : 'false'}
            >${title}</a
          >`,
      )}
    </nav>`
  }
}

/**
 * @param {App} app
 * @param {Overview} webhook
 * @param {boolean} isOverview
 * @param {() => Promise<void>} refresh
 * @param {TestSender} tests
 * @returns {Template}
 */
function heading(app, webhook, isOverview, refresh, tests) {
  const { url, description, enabled } = webhook
  // A long one is whole in the settings.
  const shown = url.length > MAX_HEADING_LENGTH ? shortAddress(url, MAX_HEADING_LENGTH) : address(url)
  return html`<div class="heading">
    <div>
      <h1 tabindex="-1">${description === '' ? shown : description}</h1>
      <div class="under">
        <p>${webhookMark(webhook, app.times, !isOverview)} ${enabledSwitch(app, webhook, refresh)}</p>
        ${description === '' ? nothing : html`<p>${shown}</p>`}
      </div>
    </div>
    ${
      may(app.session, MANAGE)
        ? html`<div class="buttons">
            <button
              type="button"
              ?disabled=${!enabled || tests.isBusy()}
              @click=${() => tests.send(webhook.id)}
            >
              Send a test event
            </button>
          </div>`
        : nothing
    }
  </div>`
}

function noSuchTab() {
  return html`<p class="problem" role="alert">This page has no such tab. Choose one of those above.</p>`
}

function gone() {
  return html`<section class="empty">
    <h1 tabindex="-1">No such webhook</h1>
    <p>It was deleted, or it belongs to another organisation.</p>
    <p><a href="/developer">All webhooks</a></p>
  </section>`
}

import { html, nothing } from '../lib/html.js'
import { lackingToManage, MANAGE, may } from '../lib/permissions.js'
import { address, nameOf } from '../parts/address.js'
import { placeLink } from '../lib/links.js'
import { openConfirm } from '../parts/dialog.js'
import { webhookIds } from './delivery-parts.js'
import { createSecret } from './secret.js'
import { openWebhookForm } from './webhook-form.js'

/** @import { App, Overview, Tab } from '../types.d.ts' */

/**
 * What a webhook is made of: name, URL, event keys and secret; and its end.
 * @param {App} app
 * @param {string} id
 * @returns {Tab}
 */
export function createWebhookSettings(app, id) {
  const secret = createSecret(app, id)
  return {
    stop: secret.stop,
    render: (webhook, refresh) =>
      html`<div class="columns aside-first">
          <div>${webhookCard(app, webhook, refresh)}</div>
          <div>${secret.render(webhook)}</div>
        </div>
        ${may(app.session, MANAGE) ? dangerZone(app, webhook) : nothing}`,
  }
}

/**
 * @param {App} app
 * @param {Overview} webhook
 * @param {() => Promise<void>} refresh
 */
function webhookCard(app, webhook, refresh) {
  const { id, url, description, subscribedEventKeys } = webhook
  const mayChange = lackingToManage(app, subscribedEventKeys).length === 0
  return html`<section class="card">
    <div class="bar">
      <h2>Webhook</h2>
      ${
        mayChange
          ? html`<button type="button" @click=${() => openWebhookForm(app, webhook, () => void refresh())}>
              Edit
            </button>`
          : nothing
      }
    </div>
    <dl class="pairs ids">
      <dt>Name</dt>
      <dd>${description === '' ? html`<span class="faint">none</span>` : description}</dd>
      <dt>URL</dt>
      <dd>${address(url)}</dd>
      <dt>Event keys</dt>
      <dd>${eventKeys(subscribedEventKeys)}</dd>
      ${webhookIds(app, id)}
      <dt>Created</dt>
      <dd>${app.times.at(webhook.createdAt)}</dd>
      <dt>Changed</dt>
      <dd>
        ${app.times.at(webhook.updatedAt)}
        ${app.session.member.fullAccess ? html`<a href=${placeLink('audit', { webhookId: id })}>By whom</a>` : nothing}
      </dd>
    </dl>
  </section>`
}

/** @param {readonly string[]} keys */
function eventKeys(keys) {
  if (keys[0] === '*') return 'All events, those to come too.'
  return html`<span class="keys"
    >${keys.map((key) => html`<a class="key" href=${placeLink('catalogue', { key })}>${key}</a> `)}</span
  >`
}

/**
 * @param {App} app
 * @param {Overview} webhook
 */
function dangerZone(app, webhook) {
  return html`<section class="card danger-zone">
    <h2>Danger zone</h2>
    <p class="hint">
      Deleting ends deliveries for good. To pause them, switch the webhook off instead: it keeps its secret
      and its deliveries.
    </p>
    <div class="buttons">
      <button type="button" class="danger" @click=${() => openDelete(app, webhook)}>Delete</button>
    </div>
  </section>`
}

/**
 * @param {App} app
 * @param {Overview} webhook
 */
function openDelete(app, webhook) {
  openConfirm(app, {
    title: `Delete ${nameOf(webhook)}?`,
    text: html`<p>
      Nothing is sent to it any more, what waits is stopped, and its signing secret is destroyed. This cannot
      be taken back.
    </p>`,
    button: 'Delete webhook',
    run: async (close) => {
      await app.api.remove(webhook.id)
      app.webhooks = null
      app.showMessage('Webhook deleted.')
      if (close()) app.go(placeLink(''))
    },
  })
}

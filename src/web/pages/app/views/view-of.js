import { html } from '../lib/html.js'
import { addressed } from '../lib/links.js'
import { createApiKeysView } from './api-keys.js'
import { createAuditView } from './audit.js'
import { createCatalogueView } from './catalogue.js'
import { createDeliveryView } from './delivery.js'
import { createEventView } from './event.js'
import { createEventsView } from './events.js'
import { createRetryJobsView } from './retry-jobs.js'
import { createLiveView } from './live.js'
import { createNotificationsView } from './settings.js'
import { isBesideList } from './side-panel.js'
import { createWebhookList } from './webhook-list.js'
import { createWebhookView } from './webhook.js'

/** @import { App, View } from '../types.d.ts' */

/**
 * The view that an address names: `?webhook=…`, which mails link to, `?webhook=…&delivery=…`, `?view=…`, or the list.
 * @param {App} app
 * @returns {View}
 */
export function createView(app) {
  const [webhookId, deliveryId] = [addressed('webhook'), addressed('delivery')]
  const eventId = addressed('event')
  switch (addressed('view')) {
    case '':
      if (webhookId === '') return createWebhookList(app)
      return deliveryId === '' || isBesideList()
        ? createWebhookView(app, webhookId)
        : createDeliveryView(app, webhookId, deliveryId)
    case 'events':
      return eventId === '' ? createEventsView(app) : createEventView(app, eventId)
    case 'catalogue':
      return createCatalogueView(app)
    case 'audit':
      return createAuditView(app)
    case 'retries':
      return createRetryJobsView(app)
    case 'api-keys':
      return createApiKeysView(app)
    case 'live':
      return createLiveView(app)
    case 'notifications':
      return createNotificationsView(app)
    default:
      return UNKNOWN
  }
}

/** Says that the address names no view. @type {View} */
const UNKNOWN = {
  title: 'No such page',
  render: () =>
    html`<section class="empty">
      <h1 tabindex="-1">No such page</h1>
      <p>The address of this page is not one of the developer area.</p>
      <p><a href="/developer">All webhooks</a></p>
    </section>`,
}

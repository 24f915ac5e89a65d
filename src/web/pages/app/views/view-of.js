import { createDeliveryView } from './delivery.js'
import { createWebhookList } from './webhook-list.js'
import { createWebhookView } from './webhook.js'

/** @import { App, View } from '../types.d.ts' */

/**
 * The view that an address names: `?webhook=…`, which mails link to, `?webhook=…&delivery=…`, or the list.
 * @param {App} app
 * @param {URLSearchParams} parameters
 * @returns {View}
 */
export function createView(app, parameters) {
  const webhookId = parameters.get('webhook')
  const deliveryId = parameters.get('delivery')
  if (webhookId === null) return createWebhookList(app)
  return deliveryId === null
    ? createWebhookView(app, webhookId)
    : createDeliveryView(app, webhookId, deliveryId)
}

import { deliveryLink, searchOf } from '../lib/links.js'
import { inWords } from '../parts/problem.js'

/** @import { App } from '../types.d.ts' */

/**
 * Sends a test event to the webhook, and shows its delivery.
 * @param {App} app
 * @param {string} webhookId
 * @param {string} [eventKey] whose example is sent
 */
export async function sendTest(app, webhookId, eventKey) {
  try {
    const { deliveryId } = await app.api.sendTest(webhookId, eventKey)
    app.go(searchOf(deliveryLink(webhookId, deliveryId)))
    app.showMessage('A test event is on its way.')
  } catch (error) {
    app.showMessage(inWords(error))
  }
}

/** @import { Session } from '../types.d.ts' */

/** @param {string} webhookId */
export const webhookLink = (webhookId) =>
  `/developer?${new URLSearchParams({ webhook: webhookId }).toString()}`

/**
 * @param {string} webhookId
 * @param {string} deliveryId
 */
export const deliveryLink = (webhookId, deliveryId) =>
  `/developer?${new URLSearchParams({ webhook: webhookId, delivery: deliveryId }).toString()}`

/**
 * Where operators find the delivery's workflow; null where the page was not told.
 * @param {Session} session
 * @param {string} deliveryId
 */
export function workflowLink({ temporalUi }, deliveryId) {
  if (temporalUi === null) return null
  const { url, namespace } = temporalUi
  return `${url}/namespaces/${encodeURIComponent(namespace)}/workflows/${encodeURIComponent(`delivery/${deliveryId}`)}`
}

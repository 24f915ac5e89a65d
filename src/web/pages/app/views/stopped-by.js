/** @import { App, AuditEntry, DeliveryDetail } from '../types.d.ts' */

/** The latest entries of a webhook; what was stopped longer ago stays without a name. */
const SEARCHED = '100'

/**
 * Returns the entry of the audit trail about what stopped the delivery; null where it is not found, or not for this
 * member.
 * @param {App} app
 * @param {DeliveryDetail} delivery
 * @returns {Promise<AuditEntry | null>}
 */
export async function findStop(app, delivery) {
  if (!app.session.member.fullAccess || delivery.completedAt === null) return null
  const { data } = await app.api.audit({ webhookId: delivery.webhookId, limit: SEARCHED })
  // Newest first: the act is recorded in the transaction that stops the delivery.
  return data.find((entry) => isStopOf(entry, delivery)) ?? null
}

/**
 * @param {AuditEntry} entry
 * @param {DeliveryDetail} delivery
 */
function isStopOf({ action, deliveryId, at }, { id, stopReason, completedAt }) {
  const isSameAct = Math.abs(Date.parse(at) - Date.parse(completedAt ?? '')) < 1_000
  switch (stopReason) {
    case 'discarded':
      return deliveryId === id
        ? action === 'delivery.discarded'
        : action === 'deliveries.discarded' && isSameAct
    case 'webhook_disabled':
    case 'unsubscribed':
      return action === 'webhook.updated' && isSameAct
    case 'webhook_deleted':
      return action === 'webhook.deleted' && isSameAct
    default:
      return false
  }
}

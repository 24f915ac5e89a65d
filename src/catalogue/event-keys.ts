import { permissionForEventKey } from '../domain/permissions.ts'

/** What is known of an event key without its payload: who may subscribe to it, and what it tells (spec 6.1). */
export type EventKeyFacts = {
  readonly key: string
  readonly meaning: string
  readonly permission: string
  readonly subscribable: boolean
}

/** In the order of the spec's table (6.1), which a test compares with this list. */
const subscribableKeys: readonly (readonly [key: string, meaning: string])[] = [
  ['accessLogEntry:coupled', 'Access log entry linked to a customer or access method'],
  ['accessLogEntry:processed', 'Access log entry processed'],
  ['accessMethod:created', 'Access method created'],
  ['accessMethod:deleted', 'Access method deleted'],
  ['accessMethod:updated', 'Access method updated'],
  ['accessMethodOperation:created', 'Access method operation created'],
  ['accessMethodOperation:updated', 'Access method operation updated'],
  ['accessPoint:created', 'Barrier created'],
  ['accessPoint:deleted', 'Barrier deleted'],
  ['accessPoint:openTooLong', 'Barrier open too long'],
  ['accessPoint:physicalStateChanged', 'Barrier physical state changed'],
  ['accessPoint:updated', 'Barrier updated'],
  ['bankAccountTransaction:imported', 'Bank transactions imported or synchronised'],
  ['call:created', 'Call created'],
  ['call:updated', 'Call updated'],
  ['comment:created', 'Comment created'],
  ['comment:deleted', 'Comment deleted'],
  ['comment:mentioned', 'User mentioned in a comment'],
  ['comment:pinned', 'Comment pinned'],
  ['comment:resolved', 'Comment resolved'],
  ['comment:updated', 'Comment updated'],
  ['controller:adoption:approved', 'Controller adoption approved'],
  ['controller:adoption:rejected', 'Controller adoption rejected'],
  ['controller:adoption:requested', 'Controller adoption requested'],
  ['controller:created', 'Controller created'],
  ['controller:deleted', 'Controller deleted'],
  ['controller:logs:submitted', 'Controller logs submitted'],
  ['controller:updated', 'Controller updated'],
  ['customer:contact:created', 'Customer contact created'],
  ['customer:contact:deleted', 'Customer contact deleted'],
  ['customer:contact:updated', 'Customer contact updated'],
  ['customer:created', 'Customer created'],
  ['customer:deleted', 'Customer deleted'],
  ['customer:updated', 'Customer updated'],
  ['document:created', 'Document created'],
  ['document:deleted', 'Document deleted'],
  ['document:updated', 'Document updated'],
  ['event-log:created', 'Event log entry created'],
  ['event-log:updated', 'Event log updated'],
  ['identityDocumentScan:completed', 'Identity document scan completed'],
  ['identityDocumentScan:deleted', 'Identity document scan deleted'],
  ['identityDocumentScan:linked', 'Identity document scan linked to a customer'],
  ['identityDocumentScan:pendingQueueChanged', 'Queue of pending scans changed'],
  ['identityDocumentScan:unlinked', 'Identity document scan unlinked from a customer'],
  ['inbox:message-created', 'New inbox message, incoming or outgoing'],
  ['inbox:participant-reaction', 'Emoji reaction in an inbox thread'],
  ['inbox:thread-updated', 'Inbox thread updated (preview, archive, last message)'],
  ['inbox:typing-changed', 'Someone is typing in an inbox thread'],
  ['inbox:urgent-handoff', 'Urgent hand-over of an inbox thread'],
  ['invoice:created', 'Invoice created'],
  ['invoice:deleted', 'Invoice deleted'],
  ['invoice:moved-to-customer', 'Invoice moved to another customer'],
  ['invoice:paid', 'Invoice paid'],
  ['invoice:updated', 'Invoice updated'],
  ['mandate:created', 'Mandate created'],
  ['mandate:deleted', 'Mandate deleted'],
  ['mandate:updated', 'Mandate updated'],
  ['meter-alarm:created', 'Meter alarm created'],
  ['meter-alarm:resolved', 'Meter alarm resolved'],
  ['meter:updated', 'Meter updated'],
  ['nfc-tag-transaction:changed', 'NFC tag transaction changed'],
  ['nfc-tag:blocked', 'NFC tag blocked'],
  ['nfc-tag:presented', 'NFC tag presented'],
  ['nfc-tag:unblocked', 'NFC tag unblocked'],
  ['nfc-tag:updated', 'NFC tag updated'],
  ['notification-delivery:deleted', 'External notification deleted'],
  ['notification-delivery:updated', 'Notification delivery updated'],
  ['payment-group:assigned-to-invoice', 'Payment group linked to an invoice'],
  ['payment-group:created', 'Payment group created'],
  ['payment-group:deleted', 'Payment group deleted'],
  ['payment-group:payments-added', 'Payments added to a payment group'],
  ['payment-group:payments-removed', 'Payments removed from a payment group'],
  ['payment-group:unassigned-from-invoice', 'Payment group unlinked from an invoice'],
  ['payment-group:updated', 'Payment group updated'],
  ['payment-report:updated', 'Payment report updated'],
  ['payment:created', 'Payment created'],
  ['payment:deleted', 'Payment deleted'],
  ['payment:updated', 'Payment updated'],
  ['img:clear-tablet', 'Image cleared from a tablet'],
  ['img:to-tablet', 'Image sent to a tablet'],
  ['pdf:clear-tablet', 'PDF cleared from a tablet'],
  ['pdf:to-tablet', 'PDF sent to a tablet'],
  ['print-queue-job:updated', 'Print queue job updated'],
  ['product:created', 'Product created'],
  ['product:deleted', 'Product deleted'],
  ['product:updated', 'Product updated'],
  ['reservation:created', 'Reservation created'],
  ['reservation:updated', 'Reservation updated'],
  ['terrain:updated', 'Terrain updated'],
  ['vehiclePresence:updated', 'Vehicle presence updated (inside, ghost vehicle, or departed)'],
]

/** Has a payload (spec 6.3) but no place in the table: it reaches `*` and the stream, never a subscription by name. */
const unlistedKeys: readonly (readonly [key: string, meaning: string])[] = [
  ['organizationSettings:updated', 'Organisation settings updated'],
]

/** Every event key that producers may publish: the subscribable ones first, in the spec's order. */
export const eventKeyFacts: readonly EventKeyFacts[] = [
  ...subscribableKeys.map((row) => toFacts(row, true)),
  ...unlistedKeys.map((row) => toFacts(row, false)),
]

function toFacts([key, meaning]: readonly [string, string], subscribable: boolean): EventKeyFacts {
  return { key, meaning, permission: permissionForEventKey(key), subscribable }
}

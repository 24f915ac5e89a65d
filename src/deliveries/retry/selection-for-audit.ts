import type { DeliverySelection } from '../../domain/delivery-filter.ts'

/** Returns what a command was limited to, for the audit trail: nothing where it was not. */
export function selectionForAudit({ deliveryIds, filter }: DeliverySelection): Record<string, unknown> {
  if (deliveryIds !== null) return { deliveryIds }
  if (filter === null) return {}
  return { filter: Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== null)) }
}

import type { Static } from 'typebox'
import type { DeliveryFilter, DeliverySelection } from '../../domain/delivery-filter.ts'
import type { FieldError } from '../../problem-error.ts'
import type { DeliveryFilterSchema } from '../schemas/delivery.ts'

/** Parses what deliveries are selected by, in a query or a body. */
export function parseDeliveryFilter(given: Static<typeof DeliveryFilterSchema>): DeliveryFilter {
  const { state, eventKey, statusCode, failureCode } = given
  const dateOf = (text: string | undefined): Date | null => (text === undefined ? null : new Date(text))
  return {
    state: state ?? null,
    eventKey: eventKey ?? null,
    statusCode: statusCode ?? null,
    since: dateOf(given.since),
    until: dateOf(given.until),
    failureCode: failureCode ?? null,
    attemptedSince: dateOf(given.attemptedSince),
    attemptedUntil: dateOf(given.attemptedUntil),
  }
}

/** Parses the deliveries that a body names. */
export function parseDeliverySelection(body: {
  deliveryIds?: string[]
  filter?: Static<typeof DeliveryFilterSchema>
}): DeliverySelection {
  const { deliveryIds, filter } = body
  return {
    deliveryIds: deliveryIds === undefined ? null : [...new Set(deliveryIds.map((id) => id.toLowerCase()))],
    filter: filter === undefined ? null : parseDeliveryFilter(filter),
  }
}

type Fields = Readonly<Record<string, unknown>>

/** Checks that a body names deliveries in exactly one way. */
export function selectionErrors({ deliveryIds, filter }: Fields): FieldError[] {
  if (deliveryIds === undefined && filter === undefined)
    return [{ pointer: '/deliveryIds', code: 'required', detail: 'is required where there is no `filter`' }]
  if (deliveryIds === undefined || filter === undefined) return []
  return [{ pointer: '/filter', code: 'invalid', detail: 'must not be combined with `deliveryIds`' }]
}

/** Checks that a retry job selects deliveries of one webhook only, and that mode `undelivered` selects some. */
export function retrySelectionErrors(fields: Fields): FieldError[] {
  const { mode, id, deliveryIds, filter } = fields
  const selects = deliveryIds !== undefined || filter !== undefined
  if (!selects && mode !== 'undelivered') return []
  return [
    ...selectionErrors(fields),
    ...(id === undefined
      ? [{ pointer: '/id', code: 'required', detail: 'is required with a selection' } as const]
      : []),
  ]
}

// Hand-written: one condition over three tables, which the list, retry jobs and discarding share.
import { NO_FILTER, type DeliveryFilter, type DeliverySelection } from '../../domain/delivery-filter.ts'
import { firstIdAt } from '../../ids.ts'

/**
 * SQL for whether delivery `d` fits a {@link DeliveryFilter}, whose members are its parameters. It reads one event and
 * the attempts of the delivery by primary key, and only where the filter asks for them.
 */
export const FITS_FILTER = `(:state::text IS NULL OR d.state = :state)
        AND (:since::timestamptz IS NULL OR d.created_at >= :since)
        AND (:until::timestamptz IS NULL OR d.created_at < :until)
        AND (:eventKey::text IS NULL OR (SELECT key FROM event WHERE id = d.event_id) = :eventKey)
        AND (:statusCode::int IS NULL OR
             (SELECT status_code FROM attempt WHERE delivery_id = d.id AND number = d.attempts) = :statusCode)
        AND (:failureCode::text IS NULL AND :attemptedSince::timestamptz IS NULL AND :attemptedUntil::timestamptz IS NULL
             OR EXISTS (SELECT 1 FROM attempt a WHERE a.delivery_id = d.id
                           AND (:failureCode::text IS NULL OR a.failure_code = :failureCode)
                           AND (:attemptedSince::timestamptz IS NULL OR a.started_at >= :attemptedSince)
                           AND (:attemptedUntil::timestamptz IS NULL OR a.started_at < :attemptedUntil)))`

/** SQL for whether delivery `d` is selected; {@link selectionParameters} gives its parameters. */
export const IS_SELECTED = `(:deliveryIds::uuid[] IS NULL OR d.id = ANY (:deliveryIds))
        AND d.id >= :from::uuid AND d.id < :before::uuid AND ${FITS_FILTER}`

export function selectionParameters({ deliveryIds, filter }: DeliverySelection) {
  const conditions = filter ?? NO_FILTER
  return { deliveryIds, ...idRangeOf(conditions), ...conditions }
}

/** The most rows that one statement looks at for those that fit a filter. */
export const MAX_SCANNED = 5_000

/** The highest UUID there is; no delivery has it. */
const BEYOND_ALL = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** An id is made at most so long after the beginning of its transaction, which is `created_at`. */
const ID_DELAY_MS = 60_000

/** Returns the ids, `from` inclusive and `before` exclusive, between which all deliveries of the filter's time are. */
export function idRangeOf({
  since,
  until,
  attemptedUntil,
}: Pick<DeliveryFilter, 'since' | 'until' | 'attemptedUntil'>): {
  from: string
  before: string
} {
  // A delivery is created before it is attempted.
  const untilMs = Math.min(until?.getTime() ?? Infinity, attemptedUntil?.getTime() ?? Infinity)
  return {
    from: firstIdAt(since === null ? 0 : since.getTime()),
    before: untilMs === Infinity ? BEYOND_ALL : firstIdAt(untilMs + ID_DELAY_MS),
  }
}

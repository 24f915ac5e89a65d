// Hand-written: the newest rows of each webhook, read along its index.
import type { DeliveryState } from '../../domain/delivery-state.ts'
import { sql, type Db } from '../connection/db.ts'
import { DELIVERY_COLUMNS, type DeliveryRow } from './deliveries.ts'

export type RecentDeliveryFilter = { state: DeliveryState | null; eventKey: string | null; limit: number }

/** Of each webhook so many deliveries are looked at. */
export const MAX_RECENT = 50

/**
 * Returns the newest deliveries of all webhooks of the organisation that are not deleted, newest first, among the newest
 * {@link MAX_RECENT} of each webhook.
 */
export async function listRecentDeliveries(
  db: Db,
  organisationId: string,
  { state, eventKey, limit }: RecentDeliveryFilter,
): Promise<DeliveryRow[]> {
  return sql(
    `WITH looked AS MATERIALIZED (
       SELECT newest.* FROM webhook w CROSS JOIN LATERAL (
         SELECT * FROM delivery d
          WHERE d.organisation_id = :organisationId AND d.webhook_id = ANY (ARRAY[w.id])
          ORDER BY d.webhook_id DESC, d.id DESC LIMIT ${MAX_RECENT}
       ) newest
        WHERE w.organisation_id = :organisationId AND w.deleted_at IS NULL
     ), fitting AS MATERIALIZED (
       SELECT * FROM looked d
        WHERE (:state::text IS NULL OR d.state = :state)
          AND (:eventKey::text IS NULL OR (SELECT key FROM event WHERE id = d.event_id) = :eventKey)
        ORDER BY d.id DESC LIMIT :limit
     )
     SELECT ${DELIVERY_COLUMNS} FROM fitting d JOIN event e ON e.id = d.event_id ORDER BY d.id DESC`,
    { organisationId, state, eventKey, limit },
  ).rows(db)
}

// Hand-written: unnest and aggregation over arrays.
import { WILDCARD } from '../../domain/permissions.ts'
import { sql, type Db } from '../connection/db.ts'

/** An event key, and how many webhooks of all organisations subscribe to it by name. */
export type SubscribedKey = { eventKey: string; webhooks: number }

/** Returns the subscribed event keys that are not among `known`, by name. Reads every webhook: for use at start. */
export function findUnknownSubscribedKeys(db: Db, known: readonly string[]): Promise<SubscribedKey[]> {
  return sql(
    `SELECT key AS "eventKey", count(*)::int AS webhooks
       FROM webhook w, unnest(w.subscribed_event_keys) AS key
      WHERE w.deleted_at IS NULL AND key <> '${WILDCARD}' AND key <> ALL (:known)
      GROUP BY key ORDER BY key`,
    { known },
  ).rows<SubscribedKey>(db)
}

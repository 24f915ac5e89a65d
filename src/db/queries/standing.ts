// Hand-written: the state of a delivery and one of its attempts in one read, by PostgreSQL's clock.
import type { FailureCode } from '../../domain/attempt-outcome.ts'
import type { DeliveryState } from '../../domain/delivery-state.ts'
import { sql, type Db } from '../connection/db.ts'

/** The state of a delivery, and the record of attempt `number` if there is one. */
export type Standing = {
  state: DeliveryState
  attempts: number
  /** When the next attempt is due; null before the first. */
  dueAt: Date | null
  /** In how many ms that is; not positive when it may be made by now. */
  dueInMs: number
  /** Unix ms of the database's clock. */
  nowMs: number
  /** Rest of a run's lease of the row, in ms; 0 without one. */
  leasedForMs: number
  /** The webhook takes the delivery, as it is now. */
  isTaken: boolean
  recorded: { failureCode: FailureCode | null; statusCode: number | null } | null
}

type Columns = Omit<Standing, 'recorded'> & {
  outcome: string | null
  failureCode: FailureCode | null
  statusCode: number | null
}

/** Returns the webhooks of those deliveries that are not final and that their webhook, as it is now, does not take. */
export function findRefusing(
  db: Db,
  deliveryIds: readonly string[],
): Promise<{ organisationId: string; webhookId: string }[]> {
  return sql(
    `SELECT DISTINCT d.organisation_id AS "organisationId", d.webhook_id AS "webhookId"
       FROM delivery d JOIN event e ON e.id = d.event_id JOIN webhook w ON w.id = d.webhook_id
      WHERE d.id = ANY(:deliveryIds::uuid[]) AND d.completed_at IS NULL
        AND stop_reason_of(w.deleted_at, w.enabled, w.subscribed_event_keys, e.key, d.is_erased) IS NOT NULL`,
    { deliveryIds },
  ).rows(db)
}

export async function findStanding(
  db: Db,
  key: { organisationId: string; deliveryId: string; number: number },
): Promise<Standing | null> {
  const { organisationId, deliveryId, number } = key
  const found = await sql(
    `SELECT d.state, d.attempts, d.next_attempt_at AS "dueAt",
            coalesce(extract(epoch FROM d.next_attempt_at - delivery_now()) * 1000, 0)::float8 AS "dueInMs",
            (extract(epoch FROM delivery_now()) * 1000)::float8 AS "nowMs",
            coalesce(greatest(0, extract(epoch FROM d.lease_until - delivery_now()) * 1000), 0)::float8 AS "leasedForMs",
            stop_reason_of(w.deleted_at, w.enabled, w.subscribed_event_keys, e.key, d.is_erased) IS NULL AS "isTaken",
            a.outcome, a.failure_code AS "failureCode", a.status_code AS "statusCode"
       FROM delivery d
       JOIN webhook w ON w.id = d.webhook_id
       JOIN event e ON e.id = d.event_id
       LEFT JOIN attempt a ON a.delivery_id = d.id AND a.number = :number::int
      WHERE d.id = :deliveryId AND d.organisation_id = :organisationId`,
    { deliveryId, organisationId, number },
  ).first<Columns>(db)
  if (found === null) return null
  const { outcome, failureCode, statusCode, ...standing } = found
  return { ...standing, recorded: outcome === null ? null : { failureCode, statusCode } }
}

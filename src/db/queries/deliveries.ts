// Hand-written: a delivery is read with its event, its webhook and its attempts.
import type { DeliveryState } from '../../domain/delivery-state.ts'
import { sql, type Db } from '../connection/db.ts'
import type { Attempt, Delivery } from '../entities/delivery.ts'
import type { Event } from '../entities/event.ts'

/** The payload of an event; where it is erased, since when and by whom. */
export type StoredPayload = Pick<Event, 'body' | 'erasedAt' | 'erasedBy'>

/** The columns of a {@link StoredPayload}. */
export const PAYLOAD_COLUMNS = `event.body, event.erased_at AS "erasedAt", event.erased_by AS "erasedBy"`

/** A delivery as the API shows it. */
export type DeliveryRow = Pick<
  Delivery,
  | 'id'
  | 'webhookId'
  | 'eventId'
  | 'isTest'
  | 'state'
  | 'stopReason'
  | 'nextAttemptAt'
  | 'pausedSince'
  | 'createdAt'
  | 'completedAt'
> & {
  eventKey: string
  /** Of its event. */
  traceId: string
  attemptCount: number
  latestAttempt: AttemptSummaryRow | null
}

/** What an attempt brought. `startedAt`: ISO 8601. */
type AttemptSummaryRow = Pick<
  AttemptRow,
  'number' | 'durationMs' | 'outcome' | 'statusCode' | 'failureCode' | 'error'
> & { startedAt: string }

/** The columns of a {@link DeliveryRow}, of a delivery and its event. */
export const DELIVERY_COLUMNS = `delivery.id, delivery.webhook_id AS "webhookId", delivery.event_id AS "eventId",
  event.key AS "eventKey", event.trace_id AS "traceId", delivery.is_test AS "isTest", delivery.state,
  delivery.stop_reason AS "stopReason",
  delivery.attempts AS "attemptCount", delivery.next_attempt_at AS "nextAttemptAt",
  delivery.paused_since AS "pausedSince", delivery.created_at AS "createdAt", delivery.completed_at AS "completedAt",
  (SELECT json_build_object('number', number, 'startedAt', started_at, 'durationMs', duration_ms, 'outcome', outcome,
            'statusCode', status_code, 'failureCode', failure_code, 'error', error)
     FROM attempt WHERE delivery_id = delivery.id AND number = delivery.attempts) AS "latestAttempt"`

/** Deliveries shown of one event, for each replay may make another. */
const SHOWN_DELIVERIES = 1_000

/**
 * The newest {@link SHOWN_DELIVERIES} of an event, oldest first. Without OFFSET PostgreSQL may walk all deliveries in
 * the order of their ids.
 */
export async function listDeliveriesOfEvent(
  db: Db,
  organisationId: string,
  eventId: string,
): Promise<DeliveryRow[]> {
  return sql(
    `SELECT ${DELIVERY_COLUMNS}
       FROM (SELECT * FROM (SELECT * FROM delivery
                             WHERE organisation_id = :organisationId AND event_id = :eventId OFFSET 0) own
              ORDER BY id DESC LIMIT ${SHOWN_DELIVERIES}) delivery
       JOIN event ON event.id = delivery.event_id ORDER BY delivery.id`,
    { organisationId, eventId },
  ).rows(db)
}

/** One delivery of a webhook that is not deleted, with its event's payload and the webhook's subscription as it is now. */
export async function findDelivery(
  db: Db,
  organisationId: string,
  webhookId: string,
  id: string,
): Promise<(DeliveryRow & StoredPayload & { subscribedEventKeys: string[] }) | null> {
  return sql(
    `SELECT ${DELIVERY_COLUMNS}, ${PAYLOAD_COLUMNS},
            webhook.subscribed_event_keys AS "subscribedEventKeys"
       FROM delivery JOIN event ON event.id = delivery.event_id JOIN webhook ON webhook.id = delivery.webhook_id
      WHERE delivery.organisation_id = :organisationId AND delivery.webhook_id = :webhookId AND delivery.id = :id
        AND webhook.deleted_at IS NULL`,
    { organisationId, webhookId, id },
  ).first(db)
}

/** The record of an attempt as the API shows it. `responseHeaders` is null where no answer came. */
export type AttemptRow = Omit<Attempt, 'deliveryId' | 'webhookId'>

/** Attempts shown of one delivery, for each may have 112 KiB, and each retry on request makes another. */
const SHOWN_ATTEMPTS = 100

/** A delivery's attempts up to number `last`, in the order they were made: the latest {@link SHOWN_ATTEMPTS}. */
export async function listAttempts(
  db: Db,
  organisationId: string,
  deliveryId: string,
  last: number,
): Promise<AttemptRow[]> {
  return sql(
    `SELECT number, trigger, url, started_at AS "startedAt", duration_ms AS "durationMs", outcome,
            failure_code AS "failureCode", status_code AS "statusCode", error, response_headers AS "responseHeaders",
            response_body AS "responseBody", response_truncated AS "responseTruncated"
       FROM attempt JOIN delivery ON delivery.id = attempt.delivery_id
      WHERE delivery.organisation_id = :organisationId AND delivery.id = :deliveryId
        AND number > :last::int - :shown AND number <= :last
      ORDER BY number`,
    { organisationId, deliveryId, last, shown: SHOWN_ATTEMPTS },
  ).rows(db)
}

/** The state of a delivery, and the record of attempt `number` if there is one. */
export type DeliveryStatus = {
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
  recorded: Pick<Attempt, 'failureCode' | 'statusCode'> | null
}

type Columns = Omit<DeliveryStatus, 'recorded'> &
  Pick<Attempt, 'failureCode' | 'statusCode'> & { outcome: string | null }

/** Whether a webhook, as it is now, takes the delivery of an event. The SQL function states the rule. */
const IS_TAKEN = `(stop_reason_of(webhook.deleted_at, webhook.enabled, webhook.subscribed_event_keys, event.key,
                       event.body IS NULL) IS NULL)`

/** Returns the webhooks, of any organisation, of those deliveries that are not final and that their webhook, as it is now, does not take. */
export function findRefusing(
  db: Db,
  deliveryIds: readonly string[],
): Promise<{ organisationId: string; webhookId: string }[]> {
  return sql(
    `SELECT DISTINCT delivery.organisation_id AS "organisationId", delivery.webhook_id AS "webhookId"
       FROM delivery JOIN event ON event.id = delivery.event_id JOIN webhook ON webhook.id = delivery.webhook_id
      WHERE delivery.id = ANY(:deliveryIds::uuid[]) AND delivery.completed_at IS NULL AND NOT ${IS_TAKEN}`,
    { deliveryIds },
  ).rows(db)
}

/** By PostgreSQL's clock. */
export async function findDeliveryStatus(
  db: Db,
  key: { organisationId: string; deliveryId: string; number: number },
): Promise<DeliveryStatus | null> {
  const { organisationId, deliveryId, number } = key
  const found = await sql(
    `SELECT delivery.state, delivery.attempts, delivery.next_attempt_at AS "dueAt",
            coalesce(extract(epoch FROM delivery.next_attempt_at - delivery_now()) * 1000, 0)::float8 AS "dueInMs",
            (extract(epoch FROM delivery_now()) * 1000)::float8 AS "nowMs",
            coalesce(greatest(0, extract(epoch FROM delivery.lease_until - delivery_now()) * 1000), 0)::float8
              AS "leasedForMs",
            ${IS_TAKEN} AS "isTaken", attempt.outcome, attempt.failure_code AS "failureCode",
            attempt.status_code AS "statusCode"
       FROM delivery JOIN event ON event.id = delivery.event_id JOIN webhook ON webhook.id = delivery.webhook_id
       LEFT JOIN attempt ON attempt.delivery_id = delivery.id AND attempt.number = :number::int
      WHERE delivery.id = :deliveryId AND delivery.organisation_id = :organisationId`,
    { deliveryId, organisationId, number },
  ).first<Columns>(db)
  if (found === null) return null
  const { outcome, failureCode, statusCode, ...status } = found
  return { ...status, recorded: outcome === null ? null : { failureCode, statusCode } }
}

// Hand-written: pages and statistics over three tables, each part read from an index made for it.
import type { AttemptTrigger, FailureCode } from '../../domain/attempt-outcome.ts'
import type { DeliveryState, StopReason } from '../../domain/delivery-state.ts'
import { sql, type Db } from '../connection/db.ts'
import { PAYLOAD_COLUMNS, type StoredPayload } from './events.ts'
import { waitingFirstAttemptsSql, type WaitingFirstAttempts } from './first-attempts.ts'

/** A delivery as the API shows it. */
export type DeliveryRow = {
  id: string
  webhookId: string
  eventId: string
  eventKey: string
  /** Of its event. */
  traceId: string
  state: DeliveryState
  /** Null unless `stopped`. */
  stopReason: StopReason | null
  attemptCount: number
  nextAttemptAt: Date | null
  /** Since when its workflow is paused in Temporal, as far as the sweeper saw. */
  pausedSince: Date | null
  createdAt: Date
  completedAt: Date | null
  latestAttempt: AttemptSummaryRow | null
}

/** What an attempt brought. `startedAt`: ISO 8601. */
type AttemptSummaryRow = Pick<
  AttemptRow,
  'number' | 'durationMs' | 'outcome' | 'statusCode' | 'failureCode' | 'error'
> & { startedAt: string }

/** The columns of a {@link DeliveryRow} of delivery `d` and its event `e`. */
export const DELIVERY_COLUMNS = `d.id, d.webhook_id AS "webhookId", d.event_id AS "eventId", e.key AS "eventKey",
  e.trace_id AS "traceId", d.state, d.stop_reason AS "stopReason",
  d.attempts AS "attemptCount", d.next_attempt_at AS "nextAttemptAt", d.paused_since AS "pausedSince",
  d.created_at AS "createdAt", d.completed_at AS "completedAt",
  (SELECT json_build_object('number', a.number, 'startedAt', a.started_at, 'durationMs', a.duration_ms,
            'outcome', a.outcome, 'statusCode', a.status_code, 'failureCode', a.failure_code, 'error', a.error)
     FROM attempt a WHERE a.delivery_id = d.id AND a.number = d.attempts) AS "latestAttempt"`

export async function listDeliveriesOfEvent(
  db: Db,
  organisationId: string,
  eventId: string,
): Promise<DeliveryRow[]> {
  return sql(
    `SELECT ${DELIVERY_COLUMNS} FROM delivery d JOIN event e ON e.id = d.event_id
      WHERE d.organisation_id = :organisationId AND d.event_id = :eventId ORDER BY d.id`,
    { organisationId, eventId },
  ).rows(db)
}

/** One delivery of a webhook that is not deleted, with its event's payload and the webhook's subscription as it is now. */
export async function findDelivery(
  db: Db,
  organisationId: string,
  webhookId: string,
  id: string,
): Promise<(DeliveryRow & StoredPayload & { isTest: boolean; subscribedEventKeys: string[] }) | null> {
  return sql(
    `SELECT ${DELIVERY_COLUMNS}, d.is_test AS "isTest", ${PAYLOAD_COLUMNS}, w.subscribed_event_keys AS "subscribedEventKeys"
       FROM delivery d JOIN event e ON e.id = d.event_id JOIN webhook w ON w.id = d.webhook_id
      WHERE d.organisation_id = :organisationId AND d.webhook_id = :webhookId AND d.id = :id AND w.deleted_at IS NULL`,
    { organisationId, webhookId, id },
  ).first(db)
}

/** The record of an attempt as the API shows it. `responseHeaders` is null where no answer came. */
export type AttemptRow = {
  number: number
  trigger: AttemptTrigger
  url: string
  startedAt: Date
  durationMs: number
  outcome: 'succeeded' | 'failed'
  failureCode: FailureCode | null
  statusCode: number | null
  error: string | null
  responseHeaders: Record<string, string> | null
  responseBody: string | null
  responseTruncated: boolean
}

/** A delivery's attempts up to number `last`, in the order they were made. */
export async function listAttempts(
  db: Db,
  organisationId: string,
  deliveryId: string,
  last: number,
): Promise<AttemptRow[]> {
  return sql(
    `SELECT a.number, a.trigger, a.url, a.started_at AS "startedAt", a.duration_ms AS "durationMs", a.outcome,
            a.failure_code AS "failureCode", a.status_code AS "statusCode", a.error,
            a.response_headers AS "responseHeaders", a.response_body AS "responseBody",
            a.response_truncated AS "responseTruncated"
       FROM attempt a JOIN delivery d ON d.id = a.delivery_id
      WHERE d.organisation_id = :organisationId AND d.id = :deliveryId AND a.number <= :last
      ORDER BY a.number`,
    { organisationId, deliveryId, last },
  ).rows(db)
}

/** The attempt of a webhook that was begun last; attempts of test events do not count. */
export type LatestAttemptRow = {
  deliveryId: string
  eventKey: string
  number: number
  attemptedAt: Date
  outcome: 'succeeded' | 'failed'
  statusCode: number | null
  error: string | null
  body: Buffer | null
}

/** How a webhook's deliveries stand (spec 4.3); test events count nowhere. */
export type WebhookStatsRow = WaitingFirstAttempts & {
  webhookId: string
  waitingForRetry: number
  permanentlyFailed: number
  stopped: number
  latestAttempt: LatestAttemptRow | null
}

/** One row per webhook of the organisation, oldest webhook first. Each part is read from an index made for it. */
export async function deliveryStats(db: Db, organisationId: string): Promise<WebhookStatsRow[]> {
  const found = await sql(
    `WITH live_webhook AS (
       SELECT id, created_at FROM webhook WHERE organisation_id = :organisationId AND deleted_at IS NULL
     ), waiting AS (
       SELECT d.webhook_id, count(*)::int AS count FROM live_webhook JOIN delivery d ON d.webhook_id = live_webhook.id
        WHERE d.state = 'waiting' GROUP BY d.webhook_id
     ), failed AS (
       SELECT d.webhook_id, count(*)::int AS count FROM live_webhook JOIN delivery d ON d.webhook_id = live_webhook.id
        WHERE d.state = 'failed' GROUP BY d.webhook_id
     ), stopped AS (
       SELECT d.webhook_id, count(*)::int AS count FROM live_webhook JOIN delivery d ON d.webhook_id = live_webhook.id
        WHERE d.state = 'stopped' AND NOT d.is_test GROUP BY d.webhook_id
     )
     SELECT live_webhook.id AS "webhookId", coalesce(waiting.count, 0) AS "waitingForRetry",
            coalesce(failed.count, 0) AS "permanentlyFailed", coalesce(stopped.count, 0) AS stopped, waiting_first.*, latest.*
       FROM live_webhook
      CROSS JOIN ${waitingFirstAttemptsSql('live_webhook.id')} waiting_first
       LEFT JOIN waiting ON waiting.webhook_id = live_webhook.id
       LEFT JOIN failed ON failed.webhook_id = live_webhook.id
       LEFT JOIN stopped ON stopped.webhook_id = live_webhook.id
       LEFT JOIN LATERAL (
         SELECT a.delivery_id AS "deliveryId", e.key AS "eventKey", a.number, a.started_at AS "attemptedAt",
                a.outcome, a.status_code AS "statusCode", a.error, e.body
           FROM (
             (SELECT * FROM attempt WHERE webhook_id = live_webhook.id AND outcome = 'succeeded'
               ORDER BY started_at DESC LIMIT 1)
             UNION ALL
             (SELECT * FROM attempt WHERE webhook_id = live_webhook.id AND outcome = 'failed'
               ORDER BY started_at DESC LIMIT 1)
             ORDER BY started_at DESC LIMIT 1
           ) a
           JOIN delivery d ON d.id = a.delivery_id
           JOIN event e ON e.id = d.event_id
       ) latest ON true
      ORDER BY live_webhook.created_at, live_webhook.id`,
    { organisationId },
  ).rows<FlatStats>(db)
  return found.map((row) => {
    const { webhookId, waitingForFirstAttempt, oldestWaitingForFirstAttemptMs, ...others } = row
    const { waitingForRetry, permanentlyFailed, stopped, ...latest } = others
    return {
      webhookId,
      waitingForFirstAttempt,
      oldestWaitingForFirstAttemptMs,
      waitingForRetry,
      permanentlyFailed,
      stopped,
      latestAttempt: isAttempt(latest) ? latest : null,
    }
  })
}

type Maybe<Row> = { [Key in keyof Row]: Row[Key] | null }
type FlatStats = Omit<WebhookStatsRow, 'latestAttempt'> & Maybe<LatestAttemptRow>

/** A webhook that was never attempted has nulls in their place. */
function isAttempt(latest: Maybe<LatestAttemptRow>): latest is LatestAttemptRow {
  return latest.deliveryId !== null
}

import type { AttemptRow, DeliveryRow, LatestAttemptRow, WebhookStatsRow } from '../db/queries/deliveries.ts'
import type { RetryJobRow } from '../db/queries/retry-jobs.ts'
import { mayReadEvent, type Grants } from '../domain/permissions.ts'
import { shortenUrl } from '../domain/webhook-name.ts'
import { embedJson } from './embed-json.ts'

export function presentDelivery(delivery: DeliveryRow) {
  const { id, webhookId, eventId, eventKey, state, attemptCount, nextAttemptAt, createdAt, completedAt } =
    delivery
  return {
    id,
    webhookId,
    eventId,
    eventKey,
    state,
    attemptCount,
    nextAttemptAt: nextAttemptAt?.toISOString() ?? null,
    createdAt: createdAt.toISOString(),
    completedAt: completedAt?.toISOString() ?? null,
  }
}

/**
 * JSON text of a delivery with its payload, byte for byte as it is delivered, and every attempt. `showsUrl`: the reader
 * may see whole URLs of the webhook.
 */
export function presentDeliveryDetail(
  delivery: DeliveryRow & { body: Buffer },
  attempts: AttemptRow[],
  showsUrl: boolean,
): string {
  return embedJson(presentDelivery(delivery), 'payload', delivery.body.toString('utf8'), {
    attempts: attempts.map((attempt) => presentAttempt(attempt, showsUrl)),
  })
}

function presentAttempt(attempt: AttemptRow, showsUrl: boolean) {
  const { number, trigger, url, startedAt, durationMs, outcome, failureCode, statusCode, error } = attempt
  const { responseHeaders: headers, responseBody, responseTruncated: truncated } = attempt
  return {
    number,
    trigger,
    url: showsUrl ? url : shortenUrl(url),
    startedAt: startedAt.toISOString(),
    durationMs,
    outcome,
    failureCode,
    statusCode,
    error,
    response: headers === null ? null : { headers, body: responseBody ?? '', truncated },
  }
}

/** JSON text of the statistics. A payload is shown only to a member that may read events with its key. */
export function presentDeliveryStats(stats: WebhookStatsRow[], reader: Grants): string {
  const data = stats.map(({ latestAttempt, ...counts }) =>
    embedJson(
      counts,
      'latestAttempt',
      latestAttempt === null ? 'null' : presentLatestAttempt(latestAttempt, reader),
    ),
  )
  return `{"data":[${data.join(',')}]}`
}

function presentLatestAttempt(latest: LatestAttemptRow, reader: Grants): string {
  const { deliveryId, eventKey, number, attemptedAt, outcome, statusCode, error, body } = latest
  return embedJson(
    { deliveryId, eventKey, number, attemptedAt: attemptedAt.toISOString(), outcome, statusCode, error },
    'payload',
    mayReadEvent(reader, eventKey) ? body.toString('utf8') : 'null',
  )
}

/** Field by field: an answer that was kept for a repeated request has lost the order of its fields. */
export function presentRetryJob(job: RetryJobRow) {
  const { id, mode, webhookId, state, total, done, succeeded, failed } = job
  return { id, mode, webhookId, state, total, done, succeeded, failed }
}

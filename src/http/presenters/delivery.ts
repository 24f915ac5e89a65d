import type { AttemptRow, AttemptSummaryRow, DeliveryRow } from '../../db/queries/deliveries.ts'
import type { StoredPayload } from '../../db/queries/deliveries.ts'
import type { FirstAttemptQueue } from '../../db/queries/first-attempts.ts'
import type { LatestAttemptRow, WebhookStatsRow } from '../../db/queries/overview.ts'
import type { RetryJobRow } from '../../db/queries/retry-jobs.ts'
import type { DeliveryRequest } from '../../deliveries/retry/read-delivery-request.ts'
import { mayChangeWebhook, mayReadErrors, type Grants, type PermissionFor } from '../../domain/permissions.ts'
import { shortenUrl } from '../../domain/webhook-name.ts'
import { shownHeaders } from '../../outbound/post-headers.ts'
import { embedJson, presentErasure, presentPayload } from './payload.ts'
import type { ReplayCount, ReplayRow } from '../../db/queries/replays.ts'

/** Presents a delivery to `reader`. */
export function presentDelivery(delivery: DeliveryRow, reader: Grants) {
  const { id, webhookId, eventId, eventKey, traceId, state, stopReason } = delivery
  const { attemptCount, nextAttemptAt, pausedSince, createdAt, completedAt, latestAttempt } = delivery
  return {
    id,
    webhookId,
    eventId,
    eventKey,
    traceId,
    state,
    stopReason,
    attemptCount,
    nextAttemptAt: nextAttemptAt?.toISOString() ?? null,
    pausedSince: pausedSince?.toISOString() ?? null,
    createdAt: createdAt.toISOString(),
    completedAt: completedAt?.toISOString() ?? null,
    latestAttempt: latestAttempt === null ? null : presentAttemptSummary(latestAttempt, reader),
  }
}

function presentAttemptSummary(attempt: AttemptSummaryRow, reader: Grants) {
  const { number, startedAt, durationMs, outcome, statusCode, failureCode, error } = attempt
  return {
    number,
    startedAt: new Date(startedAt).toISOString(),
    durationMs,
    outcome,
    statusCode,
    failureCode,
    error: mayReadErrors(reader) ? error : null,
  }
}

/**
 * Returns the JSON text of a delivery with its payload, byte for byte as it is delivered, and every attempt. Whole URLs
 * are for a reader that may change the webhook.
 */
export function presentDeliveryDetail(
  delivery: DeliveryRow & StoredPayload & { subscribedEventKeys: string[] },
  attempts: AttemptRow[],
  queue: FirstAttemptQueue | null,
  reader: Grants,
  permissionFor: PermissionFor,
): string {
  const showsUrl = mayChangeWebhook(reader, delivery.subscribedEventKeys, permissionFor)
  const payload = presentPayload(delivery, reader, permissionFor)
  const requestHeaders = shownHeaders(delivery.id, delivery.body)
  const payloadErased = presentErasure(delivery)
  const shown = { ...presentDelivery(delivery, reader), queue, requestHeaders, payloadErased }
  return embedJson(shown, 'payload', payload, {
    attempts: attempts.map((attempt) => presentAttempt(attempt, showsUrl)),
  })
}

export function presentDeliveryRequest({ url, headers, body }: DeliveryRequest) {
  return { method: 'POST', url, headers, body }
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

/** Returns the JSON text of the statistics. */
export function presentDeliveryStats(
  stats: WebhookStatsRow[],
  reader: Grants,
  permissionFor: PermissionFor,
): string {
  const data = stats.map(({ latestAttempt, ...counts }) =>
    embedJson(
      counts,
      'latestAttempt',
      latestAttempt === null ? 'null' : presentLatestAttempt(latestAttempt, reader, permissionFor),
    ),
  )
  return `{"data":[${data.join(',')}]}`
}

function presentLatestAttempt(
  latest: LatestAttemptRow,
  reader: Grants,
  permissionFor: PermissionFor,
): string {
  const { deliveryId, eventKey, number, attemptedAt, outcome, statusCode, error } = latest
  return embedJson(
    { deliveryId, eventKey, number, attemptedAt: attemptedAt.toISOString(), outcome, statusCode, error },
    'payload',
    presentPayload(latest, reader, permissionFor),
  )
}

/**
 * Names each field: the stored answer to an idempotent request is `jsonb`, has lost their order, and has instants as text.
 */
export function presentRetryJob(job: RetryJobRow) {
  const { id, mode, webhookId, state, total, done, succeeded, failed } = job
  const createdAt = new Date(job.createdAt).toISOString()
  return { id, mode, webhookId, createdAt, state, total, done, succeeded, failed }
}

/** Presents what a replay would send. */
export function presentReplayCount({ since, until, total, isTotalExact }: ReplayCount) {
  return { since: since.toISOString(), until: until.toISOString(), total, isTotalExact }
}

export function presentReplay(job: ReplayRow) {
  const { id, webhookId, state, since, until, total, isTotalExact, eventKeys, include } = job
  const { done, succeeded, failed, createdAt } = job
  const range = { since, until, total, isTotalExact, eventKeys, include }
  return { id, webhookId, state, ...range, done, succeeded, failed, createdAt }
}

import type { AttemptRow, DeliveryRow, StoredPayload } from '../../db/queries/deliveries.ts'
import type { WebhookStatsRow } from '../../db/queries/overview.ts'
import type { EventRow } from '../../db/queries/events.ts'
import type { FirstAttemptQueue } from '../../db/queries/backlog.ts'
import type { DeliveryRequest } from '../../deliveries/retry/read-delivery-request.ts'
import {
  mayChangeWebhook,
  mayReadErrors,
  mayReadPayload,
  type Grants,
  type PermissionFor,
} from '../../domain/permissions.ts'
import { shortenUrl } from '../../domain/webhook-name.ts'
import { shownHeaders } from '../../outbound/signed-headers.ts'
import { AttemptSchema } from '../schemas/delivery-detail.ts'
import { DeliverySchema } from '../schemas/delivery.ts'
import { LatestAttemptSummarySchema } from '../schemas/overview.ts'
import { embedJson, presenter } from './presenter.ts'

const presentShown = presenter(DeliverySchema)

/** Presents a delivery to `reader`. */
export function presentDelivery(delivery: DeliveryRow, reader: Grants) {
  const { latestAttempt } = delivery
  return presentShown({
    ...delivery,
    latestAttempt: latestAttempt && {
      ...latestAttempt,
      startedAt: new Date(latestAttempt.startedAt),
      error: mayReadErrors(reader) ? latestAttempt.error : null,
    },
  })
}

/**
 * Returns the JSON text of a delivery with its payload, byte for byte as it is delivered, and its attempts. Whole URLs
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

const presentShownAttempt = presenter(AttemptSchema)

function presentAttempt(attempt: AttemptRow, showsUrl: boolean) {
  const { url, responseHeaders: headers, responseBody, responseTruncated: truncated } = attempt
  return presentShownAttempt({
    ...attempt,
    url: showsUrl ? url : shortenUrl(url),
    response: headers === null ? null : { headers, body: responseBody ?? '', truncated },
  })
}

const presentLatestAttempt = presenter(LatestAttemptSummarySchema)

/** Yields the JSON text of the statistics, some webhooks at a time. */
export async function* presentDeliveryStats(
  stats: AsyncGenerator<WebhookStatsRow[], void>,
  reader: Grants,
  permissionFor: PermissionFor,
): AsyncGenerator<string, void> {
  const present = ({ latestAttempt: latest, ...counts }: WebhookStatsRow): string => {
    if (latest === null) return JSON.stringify({ ...counts, latestAttempt: null })
    const payload = presentPayload(latest, reader, permissionFor)
    return embedJson(counts, 'latestAttempt', embedJson(presentLatestAttempt(latest), 'payload', payload))
  }
  let before = '{"data":['
  for await (const rows of stats) {
    yield before + rows.map(present).join(',')
    before = ','
  }
  yield before === ',' ? ']}' : '{"data":[]}'
}

/** Returns the JSON text of an event with the states of its deliveries. */
export function presentEvent(
  event: EventRow,
  deliveries: DeliveryRow[],
  reader: Grants,
  permissionFor: PermissionFor,
): string {
  const { id, eventKey, createdAt, traceId } = event
  return embedJson(
    { id, eventKey, createdAt: createdAt.toISOString(), traceId, payloadErased: presentErasure(event) },
    'payload',
    presentPayload(event, reader, permissionFor),
    { deliveries: deliveries.map((delivery) => presentDelivery(delivery, reader)) },
  )
}

/**
 * Returns the payload of an event as JSON text, byte for byte as it is delivered; `null` to a reader that may not see it,
 * and where it is erased.
 */
function presentPayload(
  { eventKey, body }: { eventKey: string; body: Buffer | null },
  reader: Grants,
  permissionFor: PermissionFor,
): string {
  return body !== null && mayReadPayload(reader, eventKey, permissionFor) ? body.toString('utf8') : 'null'
}

/** Presents since when the payload is erased, and by whom; null where it is not. */
function presentErasure({ erasedAt, erasedBy }: Omit<StoredPayload, 'body'>) {
  return erasedAt === null || erasedBy === null ? null : { at: erasedAt.toISOString(), by: erasedBy }
}

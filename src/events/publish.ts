import type { DataSource } from 'typeorm'
import { insertEventWithDeliveries, type DeliveryToStart } from '../db/queries/events.ts'
import { runOnce, type IdempotentRequest } from '../db/queries/idempotency.ts'
import { memberText, stripWhiteSpace } from '../domain/json-text.ts'
import { newId } from '../ids.ts'
import { serialiseEnvelope } from './envelope.ts'
import { generateTraceId } from './trace-id.ts'

/** A checked request to publish; `json` is the whole request body as it was sent. */
export type PublishRequest = {
  organisationId: string
  event: string
  json: string
  timestamp: number | null
  traceId: string | null
  spanId: string | null
  triggeredBy: { id: string; name: string } | null
}

/** What was committed. `toStart` is empty for a repeat: its deliveries have been started already. */
export type Published = {
  id: string
  deliveries: { id: string; webhookId: string }[]
  toStart: DeliveryToStart[]
}

/**
 * Commits an event and its deliveries; once this returns nothing of it can be lost.
 * The deliveries are leased to `lease.owner`, which is to start them within `lease.leaseMs`.
 */
export async function publish(
  dataSource: DataSource,
  request: PublishRequest,
  idempotency: IdempotentRequest | null,
  lease: { owner: string; leaseMs: number },
): Promise<Published> {
  const { organisationId, event: key, spanId, triggeredBy } = request
  const dataText = memberText(stripWhiteSpace(request.json), 'data')
  if (dataText === null) throw new Error('data is missing from a checked request')
  const timestamp = request.timestamp ?? Date.now()
  const traceId = request.traceId ?? generateTraceId()
  const body = serialiseEnvelope({ event: key, dataText, timestamp, traceId, spanId, triggeredBy })

  let toStart: DeliveryToStart[] = []
  const { answer } = await runOnce(dataSource, idempotency, async (db) => {
    const event = { id: newId(), organisationId, key, body, emittedAt: new Date(timestamp), traceId }
    toStart = await insertEventWithDeliveries(db, event, lease)
    const deliveries = toStart.map(({ deliveryId, webhookId }) => ({ id: deliveryId, webhookId }))
    return { id: event.id, deliveries }
  })
  return { ...answer, toStart }
}

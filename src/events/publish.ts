import type { DataSource } from 'typeorm'
import type { Db } from '../db/db.ts'
import { createGrouped } from '../db/grouped.ts'
import { insertEventsWithDeliveries, type DeliveryToStart, type NewEvent } from '../db/queries/events.ts'
import { runOnce, type IdempotentRequest } from '../db/queries/idempotency.ts'
import { memberText, stripWhiteSpace } from '../domain/json-text.ts'
import { newId } from '../ids.ts'
import { serialiseEnvelope } from './envelope.ts'
import { generateTraceId } from './trace-id.ts'

/** A checked request to publish; `json` is the whole request body as it was sent. */
type PublishRequest = {
  organisationId: string
  event: string
  json: string
  timestamp: number | null
  traceId: string | null
  spanId: string | null
  triggeredBy: { id: string; name: string } | null
}

/** What was committed. `toStart` is empty for a repeat: its deliveries have been started already. */
type Published = {
  id: string
  deliveries: { id: string; webhookId: string }[]
  toStart: DeliveryToStart[]
  /** Nothing was committed now: this is the answer to an earlier request. */
  replayed: boolean
}

/** How many groups of events are committed at once, and how many events one may hold. */
const LANES = 4
const MOST = 100

/** Commits an event and its deliveries; once it returns nothing of it can be lost. */
export type Publisher = (request: PublishRequest, idempotency: IdempotentRequest | null) => Promise<Published>

/**
 * The deliveries are leased to `lease.owner`, which is to start them within `lease.leaseMs`.
 * Events that are published at the same time share a commit, but for those with an idempotency key, which is kept in
 * the transaction of its event.
 */
export function createPublisher(
  dataSource: DataSource,
  lease: { owner: string; leaseMs: number },
): Publisher {
  const insertOne = async (db: Db, event: NewEvent): Promise<DeliveryToStart[]> =>
    (await insertEventsWithDeliveries(db, [event], lease))[0] ?? []
  const insert = createGrouped<NewEvent, DeliveryToStart[]>({
    runAll: (events) => insertEventsWithDeliveries(dataSource, events, lease),
    runOne: (event) => insertOne(dataSource, event),
    lanes: LANES,
    most: MOST,
  })
  return async (request, idempotency) => {
    const event = newEvent(request)
    if (idempotency === null) {
      const toStart = await insert(event)
      return { id: event.id, deliveries: toStart.map(shown), toStart, replayed: false }
    }
    let toStart: DeliveryToStart[] = []
    const { answer, replayed } = await runOnce(dataSource, idempotency, async (db) => {
      toStart = await insertOne(db, event)
      return { id: event.id, deliveries: toStart.map(shown) }
    })
    return { ...answer, toStart, replayed }
  }
}

function newEvent({ organisationId, event: key, json, ...request }: PublishRequest): NewEvent {
  const dataText = memberText(stripWhiteSpace(json), 'data')
  if (dataText === null) throw new Error('data is missing from a checked request')
  const { spanId, triggeredBy } = request
  const timestamp = request.timestamp ?? Date.now()
  const traceId = request.traceId ?? generateTraceId()
  const body = serialiseEnvelope({ event: key, dataText, timestamp, traceId, spanId, triggeredBy })
  return { id: newId(), organisationId, key, body, emittedAt: new Date(timestamp), traceId }
}

function shown({ deliveryId, webhookId }: DeliveryToStart): { id: string; webhookId: string } {
  return { id: deliveryId, webhookId }
}

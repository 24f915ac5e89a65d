import type { DataSource } from 'typeorm'
import { isDatabaseAway, isLockTimeout } from '../db/connection-errors.ts'
import type { Db } from '../db/db.ts'
import { createGrouped } from '../db/grouped.ts'
import { insertEventsWithDeliveries, type DeliveryToStart, type NewEvent } from '../db/queries/events.ts'
import { runOnce, type IdempotentRequest } from '../db/queries/idempotency.ts'
import { memberText, stripWhiteSpace } from '../domain/json-text.ts'
import { overloaded } from '../errors.ts'
import { newId } from '../ids.ts'
import type { BacklogLimit } from './backlog-limit.ts'
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

type Publish = (request: PublishRequest, idempotency: IdempotentRequest | null) => Promise<Published>

/** Commits an event and its deliveries; once it returns nothing of it can be lost. */
export type Publisher = Publish & {
  /** The last event could not be committed, a moment ago, and none was since: the database is away for writing. */
  isFailing(): boolean
}

/** A failure says that long that the next event would fail too, unless one is committed. */
const FAILURE_COUNTS_MS = 5_000

/** What publishing needs to know of its backlog; nothing where no limit is set. */
const NO_LIMIT: BacklogLimit = { isReached: () => Promise.resolve(false), committed: () => undefined }

/**
 * Throws 503 `overloaded` while the backlog is at its limit; the repeat of an earlier request still gets its answer.
 * The deliveries are leased to `lease.owner`, which is to start them within `lease.leaseMs`.
 * Events that are published at the same time share a commit, but for those with an idempotency key, which is kept in
 * the transaction of its event.
 */
export function createPublisher(
  dataSource: DataSource,
  lease: { owner: string; leaseMs: number },
  backlog: BacklogLimit = NO_LIMIT,
): Publisher {
  const insertOne = async (db: Db, event: NewEvent): Promise<DeliveryToStart[]> =>
    (await insertEventsWithDeliveries(db, [event], lease))[0] ?? []
  const insert = createGrouped<NewEvent, DeliveryToStart[]>({
    runAll: (events) => insertEventsWithDeliveries(dataSource, events, lease),
    runOne: (event) => insertOne(dataSource, event),
    lanes: LANES,
    most: MOST,
  })
  const commit: Publish = async (request, idempotency) => {
    const isOverloaded = await backlog.isReached()
    const event = newEvent(request)
    if (idempotency === null) {
      if (isOverloaded) throw overloaded()
      const toStart = await insert(event)
      backlog.committed(toStart.length)
      return { id: event.id, deliveries: toStart.map(shown), toStart, replayed: false }
    }
    let toStart: DeliveryToStart[] = []
    const { answer, replayed } = await runOnce(dataSource, idempotency, async (db) => {
      if (isOverloaded) throw overloaded()
      toStart = await insertOne(db, event)
      return { id: event.id, deliveries: toStart.map(shown) }
    })
    backlog.committed(toStart.length)
    return { ...answer, toStart, replayed }
  }

  let failedAtMs = -Infinity
  const publish: Publish = async (request, idempotency) => {
    try {
      const published = await commit(request, idempotency)
      failedAtMs = -Infinity
      return published
    } catch (error) {
      if (isDatabaseAway(error) && !isLockTimeout(error)) failedAtMs = performance.now()
      throw error
    }
  }
  return Object.assign(publish, { isFailing: () => performance.now() - failedAtMs < FAILURE_COUNTS_MS })
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

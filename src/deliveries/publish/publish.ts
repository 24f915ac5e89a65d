import { LRUCache } from 'lru-cache'
import type { DataSource } from 'typeorm'
import { createBatchedStatement, createFairLimiter } from '../../db/connection/database-queues.ts'
import {
  DatabaseBusyError,
  isDatabaseDown,
  isStatementTimeout,
} from '../../db/connection/connection-errors.ts'
import type { Db } from '../../db/connection/db.ts'
import { transactOnce, type IdempotentRequest } from '../../db/queries/idempotency.ts'
import {
  commitReserved,
  type CommittedDelivery,
  type Commits,
  type NewEvent,
} from '../protocol/commit-events.ts'
import type { Dispatcher } from '../dispatch/dispatcher.ts'
import { overloaded } from '../../problem-error.ts'
import type { BacklogLimit } from './backlog-limit.ts'
import { countSubscribers } from '../../db/queries/webhooks.ts'
import type { Actor } from '../../domain/actor.ts'
import type { Metrics } from '../../observability/metrics.ts'
import { tracePublishing, type TraceContext } from '../../observability/tracing.ts'
import { memberText, stripWhiteSpace } from '../../domain/text-rules.ts'
import { generateTraceId, newEvent, type Envelope } from './envelope.ts'

/** What was committed. */
type Published = {
  id: string
  deliveries: { id: string; webhookId: string }[]
  /** True for the stored answer to an earlier request. */
  replayed: boolean
}

/** Batches in flight at once, and events and deliveries in one batch. */
const MAX_CONCURRENT_BATCHES = 4
const MAX_BATCH_SIZE = 100
const MAX_BATCH_ROWS = 500

/**
 * When an event is refused: before the ten seconds in which a request is answered, and so early that its statement ends
 * or runs into its time limit before that.
 */
const TIMEOUTS = { startTimeoutMs: 2_500, timeoutMs: 9_000, maxQueued: 10_000 }

/** The part of the pool that transactions of events with an idempotency key may have. */
const KEYED_SHARE = 0.75

/** Connections of a pool whose size is not given, by `pg`. */
const DEFAULT_POOL_SIZE = 10

/** Commits at once of events that have more deliveries than a batch: one of an organisation. */
const LARGE = { concurrency: 2, perKey: 1 }

type Publish = (event: NewEvent, idempotency: IdempotentRequest | null) => Promise<Published>

/** Commits an event and its deliveries, and passes these to the dispatcher, which does not delay the answer. */
export type Publisher = Publish & {
  /**
   * True for FAILURE_TTL_MS after an event could not be committed because the database is down or takes no writes, unless
   * one has been since, or was while it waited.
   */
  isFailing(): boolean
}

const FAILURE_TTL_MS = 5_000

/**
 * Builds the publisher. It throws 503 `overloaded` while the backlog is at its limit (a repeated request still gets its
 * answer), and where an event has no turn at the database or its statement runs into the time limit. Concurrent events
 * share a commit, except those with an idempotency key, which is stored in the transaction of its event, and those with
 * many deliveries. Organisations take turns.
 */
export function createPublisher({
  dataSource,
  commits,
  dispatcher,
  backlog,
}: {
  dataSource: DataSource
  commits: Commits
  dispatcher: Pick<Dispatcher, 'start'>
  backlog: BacklogLimit
}): Publisher {
  const fanOut = createFanOut(dataSource)
  /** Called at the commit, since a caller may have given up by then. */
  function committed(deliveries: CommittedDelivery[]): CommittedDelivery[] {
    backlog.committed(deliveries.length)
    dispatcher.start(deliveries)
    return deliveries
  }
  /** `rows`: the expected deliveries. */
  const insertOne = async (db: Db, event: NewEvent, rows: number): Promise<CommittedDelivery[]> =>
    (await commitReserved(db, commits, [event], rows))[0] ?? []
  const insertBatched = createBatchedStatement<{ event: NewEvent; rows: number }, CommittedDelivery[]>({
    async runAll(sized) {
      const events = sized.map(({ event }) => event)
      const rows = sized.reduce((sum, { rows }) => sum + rows, 0)
      const byEvent = await commitReserved(dataSource, commits, events, rows)
      committed(byEvent.flat())
      return byEvent
    },
    maxConcurrent: MAX_CONCURRENT_BATCHES,
    maxBatchSize: MAX_BATCH_SIZE,
    keyOf: ({ event }) => event.organisationId,
    rowsOf: ({ rows }) => rows,
    maxRows: MAX_BATCH_ROWS,
    ...TIMEOUTS,
  })
  const { poolSize = DEFAULT_POOL_SIZE } = dataSource.options
  const concurrency = Math.max(2, Math.floor(KEYED_SHARE * poolSize))
  // One place remains for another organisation.
  const keyed = createFairLimiter({ concurrency, perKey: concurrency - 1, ...TIMEOUTS })
  const large = createFairLimiter({ ...LARGE, ...TIMEOUTS })

  const commit: Publish = async (event, idempotency) => {
    const isOverloaded = await backlog.isReached()
    const { organisationId } = event
    const rows = await fanOut(event)
    const isLarge = rows > MAX_BATCH_ROWS
    if (idempotency === null) {
      if (isOverloaded) throw overloaded()
      const deliveries = isLarge
        ? await large(organisationId, async () => committed(await insertOne(dataSource, event, rows)))
        : await insertBatched({ event, rows })
      return { id: event.id, deliveries: deliveries.map(presentDelivery), replayed: false }
    }
    const runInTurn = isLarge ? large : keyed
    const { answer, replayed } = await runInTurn(organisationId, async () => {
      let deliveries: CommittedDelivery[] = []
      const done = await transactOnce(dataSource, idempotency, async (db) => {
        if (isOverloaded) throw overloaded()
        deliveries = await insertOne(db, event, rows)
        return { id: event.id, deliveries: deliveries.map(presentDelivery) }
      })
      committed(deliveries)
      return done
    })
    return { ...answer, replayed }
  }

  let failedAtMs = -Infinity
  let committedAtMs = -Infinity
  const publish: Publish = async (event, idempotency) => {
    const startedAtMs = performance.now()
    try {
      const published = await commit(event, idempotency)
      committedAtMs = performance.now()
      failedAtMs = -Infinity
      return published
    } catch (error) {
      // What waited on a lost connection fails late, when others have long been committed over new ones.
      const isNews = startedAtMs > committedAtMs
      if (isNews && isDatabaseDown(error)) failedAtMs = performance.now()
      throw isRolledBackForLoad(error) ? overloaded('Publishing takes too long at the moment.') : error
    }
  }
  return Object.assign(publish, { isFailing: () => performance.now() - failedAtMs < FAILURE_TTL_MS })
}

/** True for an event that had no turn, or whose statement took too long: it is not committed, and may be later. */
function isRolledBackForLoad(error: unknown): boolean {
  return error instanceof DatabaseBusyError ? !error.isBegun : isStatementTimeout(error)
}

function presentDelivery({ deliveryId, webhookId }: CommittedDelivery): { id: string; webhookId: string } {
  return { id: deliveryId, webhookId }
}

/** Returns how many deliveries an event has, about; Infinity where that cannot be read in time. */
type FanOut = (event: Pick<NewEvent, 'organisationId' | 'key'>) => Promise<number>

/** How long a count is used. Webhooks are created and changed one by one, so few are added meanwhile. */
const COUNT_TTL_MS = 10_000

/** The count that was used longest ago is forgotten first. */
const MAX_COUNTS = 10_000

/** An event waits this long for a count. Then it is published as one of unknown size. */
const COUNT_TIMEOUT_MS = 1_000

/** Builds the function: the webhooks that take a key are counted once per COUNT_TTL_MS while it is published. */
function createFanOut(dataSource: DataSource): FanOut {
  const count = createBatchedStatement<{ organisationId: string; key: string }, number>({
    runAll: (audiences) => countSubscribers(dataSource, audiences),
    maxConcurrent: 2,
    maxBatchSize: 100,
    timeoutMs: COUNT_TIMEOUT_MS,
  })
  const counts = new LRUCache<string, number, { organisationId: string; key: string }>({
    max: MAX_COUNTS,
    ttl: COUNT_TTL_MS,
    // While the database is slow the last count goes on to be used: events of unknown size share no commit.
    allowStale: true,
    allowStaleOnFetchRejection: true,
    noDeleteOnFetchRejection: true,
    noDeleteOnStaleGet: true,
    fetchMethod: (_name, _stale, { context }) => count(context),
  })
  // Where the database is down, the commit that follows says so.
  return ({ organisationId, key }) =>
    counts.fetch(`${organisationId} ${key}`, { context: { organisationId, key } }).then(
      (known = Infinity) => known,
      () => Infinity,
    )
}

type Dependencies = {
  publish: Publisher
  /** PostgreSQL's, so that the times of all processes are in order. */
  clock: { nowMs(): number }
  metrics: Pick<Metrics, 'eventPublished'>
}

/** The parts of the envelope that the sender gives; `json` is the whole request body as it was sent. */
type Sent = { event: string; json: string } & {
  [Field in 'timestamp' | 'traceId' | 'spanId' | 'triggeredBy']?: Envelope[Field] | null
}

type PublishedEvent = {
  id: string
  deliveries: { id: string; webhookId: string }[]
  trace: { traceId: string; spanId: string | null } | null
}

/**
 * Publishes an event. `caller`, or else the span of the publishing, fills the trace and the span where the sender gives
 * none; its span only inside its own trace. Returns the trace of the event too; null for a replayed answer, whose event
 * was committed by an earlier request.
 */
export function publishEvent(
  dependencies: Dependencies,
  { organisationId }: Actor,
  sent: Sent,
  caller: TraceContext | null,
  idempotency: IdempotentRequest | null,
): Promise<PublishedEvent> {
  const { event: eventKey, traceId, spanId } = sent
  const parent = caller ?? (traceId && spanId ? { traceId, spanId, isSampled: true } : null)
  return tracePublishing({ organisationId, eventKey }, parent, (own) =>
    publishInTrace(dependencies, organisationId, sent, caller ?? own, idempotency),
  )
}

async function publishInTrace(
  { publish, clock, metrics }: Dependencies,
  organisationId: string,
  sent: Sent,
  context: TraceContext | null,
  idempotency: IdempotentRequest | null,
): Promise<PublishedEvent> {
  const traceId = sent.traceId ?? context?.traceId ?? generateTraceId()
  const spanId = sent.spanId ?? (traceId === context?.traceId ? context.spanId : null)
  const { event, timestamp, triggeredBy = null } = sent
  const dataText = memberText(stripWhiteSpace(sent.json), 'data')
  if (dataText === null) throw new Error('data is missing in a validated request')
  const envelope = {
    event,
    dataText,
    timestamp: timestamp ?? clock.nowMs(),
    traceId,
    spanId,
    triggeredBy,
  }
  const { id, deliveries, replayed } = await publish(newEvent(organisationId, envelope), idempotency)
  if (!replayed) metrics.eventPublished(deliveries.length)
  return { id, deliveries, trace: replayed ? null : { traceId, spanId } }
}

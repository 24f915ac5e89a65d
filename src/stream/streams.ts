import type { Readable } from 'node:stream'
import type { DataSource } from 'typeorm'
import type { KeyCaller } from '../domain/actor.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import { findKeyRights, type KeyRights } from '../db/queries/api-keys.ts'
import { readEventPage } from '../db/queries/event-stream.ts'
import { retryWhileUnavailable } from '../db/connection/connection-errors.ts'
import { mayReadPayload, WILDCARD, type Grants } from '../domain/permissions.ts'
import { requireSubscriptionRights, unauthenticated } from '../problem-error.ts'
import type { Logger } from '../observability/logger.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { StreamEnd } from '../observability/metrics/requests.ts'
import { createFairQueue, type FairWork } from '../round-robin-queue.ts'
import { createFeed, noStreamNow, tooManyStreams } from './feed.ts'
import { createTally } from '../tally.ts'
import { findStart, type Positions } from './positions.ts'
import { createStream, type EventStream } from './client-stream.ts'

/** The requested event keys, `*` alone for all; null for all that the member may see. */
export type RequestedEventKeys = readonly string[] | null

/** `requestId`: the id of the request in the log. */
type StreamRequest = {
  caller: KeyCaller
  requested: RequestedEventKeys
  lastEventId: string | null
  requestId: string
}

/** The event streams that are open in this process. */
export type Streams = {
  /** Throws 429 or 503 when too many are open, 401 or 403 when the rights were lost meanwhile. */
  open(request: StreamRequest): Promise<Readable>
  /** Ends all streams and refuses new ones. */
  close(): Promise<void>
}

export type StreamLimits = { perOrganisation: number; perProcess: number }

/** Heartbeat interval, TTL of rights, and time-out of a client that does not read. */
export type StreamTimes = { beatMs: number; rightsMs: number; stallMs: number }

const TIMES: StreamTimes = { beatMs: 15_000, rightsMs: 5_000, stallMs: 10_000 }

/**
 * Events in one query for a stream that is behind, numbers that it passes over, and such queries in flight at once, in all
 * and of one organisation.
 */
const PAGE_SIZE = 100
const MAX_PAGE_RANGE = 50_000
const MAX_CONCURRENT_READS = 4
const MAX_CONCURRENT_READS_OF_ONE = 2

/** A read of a page that waits, by organisation. `run` rejects without a query once `signal` has aborted. */
type Read = FairWork & { signal: AbortSignal }

type Open = { stream: EventStream; apiKeyId: string; rights: string }

export function createStreams(dependencies: {
  dataSource: DataSource
  catalogue: Catalogue
  positions: Positions
  logger: Logger
  metrics: Metrics
  limits: StreamLimits
  times?: Partial<StreamTimes>
}): Streams {
  const { dataSource, catalogue, positions, logger, metrics, limits } = dependencies
  const { beatMs, rightsMs, stallMs } = { ...TIMES, ...dependencies.times }
  const open = new Set<Open>()
  const counts = createTally()
  let isClosing = false
  let rightsReadAt = -Infinity
  let beating: NodeJS.Timeout | undefined

  const feed = createFeed({
    dataSource,
    logger,
    isWanted: () => counts.total() > 0,
    beforeReading: checkRights,
    onRegressed: () => endAll('regressed'),
  })

  const reads = createFairQueue<Read>({
    concurrency: MAX_CONCURRENT_READS,
    perKey: MAX_CONCURRENT_READS_OF_ONE,
  })

  function readInTurn<Page>(
    organisationId: string,
    signal: AbortSignal,
    read: () => Promise<Page>,
  ): Promise<Page> {
    return new Promise((resolve, reject) => {
      const run = async (): Promise<void> => {
        if (signal.aborted) reject(new Error('The stream has ended.'))
        else await read().then(resolve, reject)
      }
      reads.add(organisationId, { key: organisationId, signal, run })
    })
  }

  /** Counts a stream before anything is awaited; returns the function that uncounts it. */
  function reserve(organisationId: string): () => void {
    if (isClosing) throw noStreamNow('This process is about to stop.')
    if (counts.total() >= limits.perProcess)
      throw noStreamNow('This process has reached its limit of open streams.')
    if (counts.of(organisationId) >= limits.perOrganisation) throw tooManyStreams(limits.perOrganisation)
    counts.add(organisationId, 1)
    beating ??= setInterval(() => open.forEach(({ stream }) => stream.beat()), beatMs)
    return () => {
      counts.add(organisationId, -1)
      if (counts.total() > 0) return
      clearInterval(beating)
      beating = undefined
    }
  }

  /** Ends streams whose rights have changed; no event is sent on rights older than `rightsMs`. */
  async function checkRights(): Promise<void> {
    if (performance.now() - rightsReadAt < rightsMs) return
    const ids = [...new Set([...open].map(({ apiKeyId }) => apiKeyId))]
    const rights = new Map((await findKeyRights(dataSource, ids)).map((found) => [found.apiKeyId, found]))
    rightsReadAt = performance.now()
    for (const { stream, apiKeyId, rights: before } of open) {
      const now = rights.get(apiKeyId)
      // A stream that was opened during the query is not in its result.
      if (!ids.includes(apiKeyId)) continue
      if (now === undefined || rightsFingerprint(catalogue, now) !== before) stream.end('rights')
    }
  }

  async function start(request: StreamRequest, release: () => void): Promise<Open> {
    const { caller, requested, requestId } = request
    const { organisationId, apiKeyId } = caller
    await feed.start()
    const rights = await rightsOf(caller, requested)
    const keys = streamedKeys(catalogue, requested, rights)
    const from = await findStart({ dataSource, positions, feed }, request)
    // Not null: a stream that failed while it is made would be counted for ever.
    feed.position()
    const startedAt = performance.now()
    metrics.streamOpened()
    const stream = createStream({
      organisationId,
      keys: keys && new Set(keys),
      start: from,
      feed,
      seal: (position) => positions.seal(organisationId, position),
      readPage(range, signal) {
        const sequence = Math.min(range.upTo.sequence, range.after + MAX_PAGE_RANGE)
        const page = { ...range, upTo: { ...range.upTo, sequence }, keys, limit: PAGE_SIZE }
        const read = () => readEventPage(dataSource, organisationId, page)
        return retryWhileUnavailable(() => readInTurn(organisationId, signal, read), signal)
      },
      stallMs,
      onSent: () => metrics.streamSent(),
      onFault: (error) => logger.error({ event: 'stream.failed', requestId, err: error }),
      onClosed(reason, events) {
        open.delete(entry)
        for (const { run } of reads.drain(({ signal }) => signal.aborted)) void run()
        release()
        metrics.streamEnded(reason)
        const durationMs = Math.round(performance.now() - startedAt)
        const fields = { organisationId, apiKeyId, requestId, reason, events, durationMs }
        logger.info({ event: 'stream.ended', ...fields })
      },
    })
    const entry = { stream, apiKeyId, rights: rightsFingerprint(catalogue, rights) }
    return entry
  }

  async function rightsOf(
    { apiKeyId, keyHash }: KeyCaller,
    requested: RequestedEventKeys,
  ): Promise<KeyRights> {
    const [rights] = await findKeyRights(dataSource, [apiKeyId])
    if (rights?.hash.equals(keyHash) !== true) throw unauthenticated()
    requireSubscriptionRights(catalogue, rights, requested ?? [])
    return rights
  }

  function endAll(reason: StreamEnd): void {
    for (const { stream } of open) stream.end(reason)
  }

  return {
    async open(request) {
      const release = reserve(request.caller.organisationId)
      try {
        const opened = await start(request, release)
        open.add(opened)
        if (isClosing) opened.stream.end('stopped')
        return opened.stream.output
      } catch (error) {
        release()
        throw error
      }
    },
    async close() {
      isClosing = true
      endAll('stopped')
      await feed.ended()
    },
  }
}

/** Returns the event keys that a member may see. Test events are sent to their webhook only. */
function visibleKeys({ eventKeys, permissionFor }: Catalogue, grants: Grants): string[] {
  return eventKeys.map(({ key }) => key).filter((key) => mayReadPayload(grants, key, permissionFor))
}

/**
 * Returns the event keys that a stream sends; null for every one, also one that only the catalogue of another process has.
 */
function streamedKeys(
  catalogue: Catalogue,
  requested: RequestedEventKeys,
  rights: KeyRights,
): string[] | null {
  if (requested !== null && !requested.includes(WILDCARD)) return [...requested]
  return rights.fullAccess ? null : visibleKeys(catalogue, rights)
}

/** Returns a fingerprint of the key's value and of what its member may see: a stream ends when it changes. */
function rightsFingerprint(catalogue: Catalogue, rights: KeyRights): string {
  return JSON.stringify([rights.hash.toString('hex'), rights.fullAccess, visibleKeys(catalogue, rights)])
}

import type { Readable } from 'node:stream'
import pLimit from 'p-limit'
import type { DataSource } from 'typeorm'
import { findKeyRights, type Caller, type KeyRights } from '../db/queries/api-keys.ts'
import { findNewestEvent, findSequence, readEventPage } from '../db/queries/event-stream.ts'
import { untilDatabaseAnswers } from '../db/patience.ts'
import { forbidden, unauthenticated } from '../errors.ts'
import type { Logger } from '../logger.ts'
import type { Metrics } from '../metrics.ts'
import { createFeed } from './feed.ts'
import { noStreamNow, tooManyStreams } from './stream-problems.ts'
import { missingForStream, rightsMark, streamedKeys, visibleKeys, type AskedKeys } from './stream-rights.ts'
import { createStream, type EventStream, type StreamEnd, type StreamStart } from './stream.ts'

/** `requestId`: under which the log has the request. */
type StreamRequest = {
  caller: Caller
  asked: AskedKeys
  lastEventId: string | null
  requestId: string
}

/** The event streams that are open in this process. */
export type Streams = {
  /** Throws 429 or 503 where there are too many, 401 or 403 when the rights went meanwhile. */
  open(request: StreamRequest): Promise<Readable>
  /** Ends all of them and lets none be opened any more. */
  close(): Promise<void>
}

export type StreamLimits = { perKey: number; perProcess: number }

/** Of milliseconds; tests take shorter ones. */
export type StreamTimes = { beatMs: number; rightsMs: number; stallMs: number }

const TIMES: StreamTimes = { beatMs: 15_000, rightsMs: 5_000, stallMs: 10_000 }

/** Events that are read at once for a stream that is behind, and how many of these readings are under way. */
const PAGE_SIZE = 100
const READINGS_AT_ONCE = 4

type Open = { stream: EventStream; apiKeyId: string; rights: string }

export function createStreams(dependencies: {
  dataSource: DataSource
  logger: Logger
  metrics: Metrics
  limits: StreamLimits
  times?: Partial<StreamTimes>
}): Streams {
  const { dataSource, logger, metrics, limits } = dependencies
  const { beatMs, rightsMs, stallMs } = { ...TIMES, ...dependencies.times }
  const open = new Set<Open>()
  const placesByKey = new Map<string, number>()
  const oneReading = pLimit(READINGS_AT_ONCE)
  let places = 0
  let isClosing = false
  let rightsReadAt = -Infinity
  let beating: NodeJS.Timeout | undefined

  const feed = createFeed({
    dataSource,
    logger,
    isWanted: () => places > 0,
    beforeReading: checkRights,
    onWentBack: () => endAll('went_back'),
  })

  /** A place is held from before anything is awaited until the stream is closed. */
  function takePlace(apiKeyId: string): () => void {
    if (isClosing) throw noStreamNow('This process is about to stop.')
    if (places >= limits.perProcess) throw noStreamNow('This process has as many open as it may have.')
    const ofKey = placesByKey.get(apiKeyId) ?? 0
    if (ofKey >= limits.perKey) throw tooManyStreams(limits.perKey)
    placesByKey.set(apiKeyId, ofKey + 1)
    places++
    beating ??= setInterval(() => open.forEach(({ stream }) => stream.beat()), beatMs)
    return () => {
      const left = (placesByKey.get(apiKeyId) ?? 1) - 1
      if (left === 0) placesByKey.delete(apiKeyId)
      else placesByKey.set(apiKeyId, left)
      if (--places > 0) return
      clearInterval(beating)
      beating = undefined
    }
  }

  /** Nothing is sent on rights that are older than this. */
  async function checkRights(): Promise<void> {
    if (performance.now() - rightsReadAt < rightsMs) return
    const ids = [...new Set([...open].map(({ apiKeyId }) => apiKeyId))]
    const rights = new Map((await findKeyRights(dataSource, ids)).map((found) => [found.apiKeyId, found]))
    rightsReadAt = performance.now()
    for (const { stream, apiKeyId, rights: before } of open) {
      const now = rights.get(apiKeyId)
      // One that was opened while they were read is not among them.
      if (!ids.includes(apiKeyId)) continue
      if (now === undefined || rightsMark(now) !== before) stream.end('rights')
    }
  }

  async function startOf({ caller, lastEventId }: StreamRequest, visible: string[]): Promise<StreamStart> {
    const { organisationId } = caller
    if (lastEventId !== null) {
      const sequence = await findSequence(dataSource, organisationId, lastEventId)
      if (sequence !== null) return { position: sequence, mark: lastEventId, gap: null }
    }
    const upTo = await feed.present()
    const mark = await findNewestEvent(dataSource, organisationId, { upTo, keys: visible })
    return { position: upTo, mark, gap: lastEventId === null ? null : { lastEventId } }
  }

  function patiently<T>(read: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return untilDatabaseAnswers(() => oneReading(read), signal)
  }

  async function start(request: StreamRequest, release: () => void): Promise<Open> {
    const { caller, asked, requestId } = request
    const { organisationId, apiKeyId } = caller
    await feed.start()
    const rights = await rightsOf(caller, asked)
    const visible = visibleKeys(rights)
    const keys = streamedKeys(asked, rights)
    const place = await startOf(request, visible)
    const startedAt = performance.now()
    metrics.streamOpened()
    const stream = createStream({
      organisationId,
      sent: new Set(keys),
      visible: new Set(visible),
      start: place,
      feed,
      readPage: (range, signal) =>
        patiently(
          () => readEventPage(dataSource, organisationId, { ...range, keys, limit: PAGE_SIZE }),
          signal,
        ),
      findMark: (upTo, signal) =>
        patiently(() => findNewestEvent(dataSource, organisationId, { upTo, keys: visible }), signal),
      pageSize: PAGE_SIZE,
      stallMs,
      onSent: () => metrics.streamSent(),
      onFault: (error) => logger.error({ event: 'stream.fault', requestId, err: error }, 'stream.fault'),
      onClosed(reason, events) {
        open.delete(entry)
        release()
        metrics.streamEnded(reason)
        const durationMs = Math.round(performance.now() - startedAt)
        const fields = { organisationId, apiKeyId, requestId, reason, events, durationMs }
        logger.info({ event: 'stream.ended', ...fields }, 'stream.ended')
      },
    })
    const entry = { stream, apiKeyId, rights: rightsMark(rights) }
    return entry
  }

  async function rightsOf({ apiKeyId, keyHash }: Caller, asked: AskedKeys): Promise<KeyRights> {
    const [rights] = await findKeyRights(dataSource, [apiKeyId])
    if (rights?.hash.equals(keyHash) !== true) throw unauthenticated()
    const missing = missingForStream(asked, rights)
    if (missing.length > 0) throw forbidden(missing)
    return rights
  }

  function endAll(reason: StreamEnd): void {
    for (const { stream } of open) stream.end(reason)
  }

  return {
    async open(request) {
      const release = takePlace(request.caller.apiKeyId)
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

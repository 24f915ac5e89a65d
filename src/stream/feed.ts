import type { DataSource } from 'typeorm'
import { isDatabaseUnavailable } from '../db/connection/connection-errors.ts'
import {
  readEvents,
  type EventRange,
  type StreamedEvent,
  type StreamPosition,
} from '../db/queries/event-stream.ts'
import type { Logger } from '../observability/logger.ts'
import { createWatermark, SequenceRegressedError, type Watermark } from './watermark.ts'
import { ProblemError } from '../problem-error.ts'

/** A stream in the feed; it is offered every event of its organisation since it joined. */
type Member = { organisationId: string; offer(event: StreamedEvent, frame: Buffer): void }

/** Reads events once for all streams of this process. */
export type Feed = {
  /** Starts reading; throws 503 when the database does not return the current position in time. */
  start(): Promise<void>
  /**
   * Returns the position of the newest event, as of some time during the call; an earlier one while a transaction delays
   * the watermark. Call it after `start`.
   */
  newest(): Promise<StreamPosition>
  /** Returns the position up to which members are offered events, now or within moments. Throws 503 without one. */
  position(): StreamPosition
  /** Returns the position up to which members have been offered events. */
  offered(): StreamPosition
  /** Offers the member every event after `position()`; it reads the events before that itself. */
  join(member: Member): void
  leave(member: Member): void
  /** Resolves when reading has stopped, which it does when no stream is open. */
  ended(): Promise<void>
}

/** Interval of the queries, and the shorter one while a transaction delays the watermark. */
const POLL_INTERVAL_MS = 50
const DELAYED_POLL_INTERVAL_MS = 10

/** Events of one query, whose bodies are in memory together. */
const MAX_RANGE = 200

const ERROR_DELAY_MS = 500
const START_TIMEOUT_MS = 2_000

/** A stream has its position within a second of its request. */
const NEWEST_TIMEOUT_MS = 750

/**
 * Builds the feed. `isWanted`: a stream is open or about to be. `beforeReading` runs before each query, and nothing is read
 * when it throws. `onRegressed` is called when the sequence numbers begin again.
 */
export function createFeed(dependencies: {
  dataSource: DataSource
  logger: Logger
  isWanted: () => boolean
  beforeReading: () => Promise<void>
  onRegressed: () => void
}): Feed {
  const { dataSource, logger, isWanted, beforeReading, onRegressed } = dependencies
  const members = new Map<string, Set<Member>>()
  let running: Promise<void> | null = null
  let position: StreamPosition | null = null
  let offered: StreamPosition | null = null
  let wake: (() => void) | null = null
  // Callers of `newest`: those since the current query began, and those that it answers.
  let nextCallers = new Set<(newest: StreamPosition) => void>()
  let callers = new Set<(newest: StreamPosition) => void>()

  async function run(): Promise<void> {
    let watermark = createWatermark({ dataSource, logger })
    let isFailing = false
    while (isWanted()) {
      try {
        await beforeReading()
        const range = nextRange(await advance(watermark))
        if (range !== null) await read(range)
        offered = position
        isFailing = false
        await pause(pauseMs(watermark, range !== null))
      } catch (error) {
        if (!isFailing || error instanceof SequenceRegressedError) report(error)
        isFailing = true
        if (error instanceof SequenceRegressedError) {
          watermark = createWatermark({ dataSource, logger })
          offered = null
          onRegressed()
        }
        position = offered
        await pause(ERROR_DELAY_MS)
      }
    }
    position = offered = null
    running = null
  }

  /** A caller is answered by a query that began after its call. */
  async function advance(watermark: Watermark): Promise<StreamPosition | null> {
    if (!watermark.isWaiting()) {
      callers = new Set([...callers, ...nextCallers])
      nextCallers = new Set()
    }
    const newest = await watermark.advance()
    position ??= newest
    if (newest === null || watermark.isWaiting()) return newest
    for (const answer of callers) answer(newest)
    callers.clear()
    return newest
  }

  /** Advances the position before the range is read: a member that joins meanwhile has read it itself. */
  function nextRange(settled: StreamPosition | null): EventRange | null {
    if (settled === null || position === null) return null
    if (position.sequence >= settled.sequence) return null
    const after = position.sequence
    position = { ...settled, sequence: Math.min(settled.sequence, after + MAX_RANGE) }
    return { after, upTo: position }
  }

  async function read(range: EventRange): Promise<void> {
    if (members.size === 0) return
    const events = await readEvents(dataSource, [...members.keys()], range)
    if (events.some(({ isLater }) => isLater)) throw new SequenceRegressedError()
    for (const event of events) {
      const frame = eventFrame(event)
      for (const member of members.get(event.organisationId) ?? []) member.offer(event, frame)
    }
  }

  function pauseMs(watermark: Watermark, hadEvents: boolean): number {
    if (hadEvents) return 0
    // A new caller waits for the query after this one.
    if (watermark.isWaiting()) return DELAYED_POLL_INTERVAL_MS
    return nextCallers.size > 0 ? 0 : POLL_INTERVAL_MS
  }

  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Returns null after `timeoutMs`. */
  function findNewest(timeoutMs: number): Promise<StreamPosition | null> {
    return new Promise((resolve) => {
      const answer = (newest: StreamPosition | null): void => {
        clearTimeout(timer)
        nextCallers.delete(answer)
        callers.delete(answer)
        resolve(newest)
      }
      const timer = setTimeout(() => answer(null), timeoutMs)
      nextCallers.add(answer)
      wake?.()
    })
  }

  function report(error: unknown): void {
    if (error instanceof SequenceRegressedError) logger.error({ event: 'stream.sequence_regressed' })
    else if (isDatabaseUnavailable(error)) logger.warn({ event: 'stream.read_failed', err: error })
    else logger.error({ event: 'stream.read_failed', err: error })
  }

  /** Throws 503 where the feed has not started, or starts again. */
  function started(found: StreamPosition | null): StreamPosition {
    if (found !== null) return found
    throw noStreamNow(
      'The database did not answer in time, or an open transaction holds the table of events.',
    )
  }

  return {
    async start() {
      running ??= run()
      if (position === null) await findNewest(START_TIMEOUT_MS)
      started(position)
    },
    newest: async () => (await findNewest(NEWEST_TIMEOUT_MS)) ?? started(position),
    position: () => started(position),
    offered: () => started(offered),
    join(member) {
      const others = members.get(member.organisationId)
      if (others === undefined) members.set(member.organisationId, new Set([member]))
      else others.add(member)
    },
    leave(member) {
      const others = members.get(member.organisationId)
      others?.delete(member)
      if (others?.size === 0) members.delete(member.organisationId)
    },
    ended: async () => running ?? undefined,
  }
}

/** Returns the 429 for an organisation with `limit` open streams. */
export function tooManyStreams(limit: number): ProblemError {
  return new ProblemError('too_many_streams', {
    detail: `Your organisation may have ${limit} streams open at once. Close one, or wait until one has ended.`,
    headers: { 'retry-after': '5' },
  })
}

/** Returns the 503 of a process that can open no stream for now. */
export function noStreamNow(detail: string): ProblemError {
  return new ProblemError('no_stream_now', {
    detail: `${detail} Try again.`,
    headers: { 'retry-after': '2' },
  })
}

/**
 * Returns the frame of an event, or of its erasure, in a `text/event-stream` (HTML standard, 9.2.6). An envelope has
 * neither CR nor LF, so it is one `data` field.
 */
export function eventFrame({ id, key, body }: StreamedEvent): Buffer {
  if (body === null)
    return Buffer.from(`id: ${id}\nevent: payload_erased\ndata: ${JSON.stringify({ event: key })}\n\n`)
  return Buffer.concat([Buffer.from(`id: ${id}\nevent: ${key}\ndata: `), body, Buffer.from('\n\n')])
}

/** Returns the frame that sets the client's reconnection delay. */
export function retryFrame(ms: number): Buffer {
  return Buffer.from(`retry: ${ms}\n\n`)
}

/** A comment, for proxies and clients that close silent connections. */
const HEARTBEAT = ': heartbeat\n'

/**
 * Returns the frame of a position to resume from. It has data, since scripts in browsers and most libraries never learn of
 * an id without.
 */
export function positionFrame(id: string): Buffer {
  return Buffer.from(`${HEARTBEAT}id: ${id}\nevent: position\ndata: {}\n\n`)
}

/** Returns the frame that reports missing events. `id`: the position to resume from. */
export function gapFrame(lastEventId: string | null, id: string): Buffer {
  const data = JSON.stringify({
    lastEventId,
    detail: 'Events after lastEventId may be missing: it is not known here, or retention has passed it.',
  })
  return Buffer.from(`id: ${id}\nevent: gap\ndata: ${data}\n\n`)
}

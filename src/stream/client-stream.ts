import { Readable } from 'node:stream'
import type { EventPage, EventRange, StreamedEvent, StreamPosition } from '../db/queries/event-stream.ts'
import type { StreamEnd } from '../observability/metrics/requests.ts'
import { type Feed, eventFrame, gapFrame, positionFrame, retryFrame } from './feed.ts'

/**
 * `position`: later events are sent. `lastEventId`: as the client sent it. `isGap`: what it stands for is not known (any
 * more).
 */
export type StreamStart = { position: StreamPosition; lastEventId: string | null; isGap: boolean }

export type EventStream = {
  output: Readable
  /** Sends the position, which also shows that the connection is alive. */
  beat(): void
  /** Ends the stream after the client has read what is buffered; a client that does not read is cut off. */
  end(reason: StreamEnd): void
}

export type StreamOptions = {
  organisationId: string
  /** Event keys that are sent; null for every one. */
  keys: ReadonlySet<string> | null
  start: StreamStart
  feed: Pick<Feed, 'position' | 'offered' | 'join' | 'leave'>
  /** Returns the id that stands for a position. */
  seal: (position: StreamPosition) => string
  /** Reads the next events up to a position; rejects only for faults, or when `signal` aborts. */
  readPage(range: EventRange & { maxBytes: number }, signal: AbortSignal): Promise<EventPage>
  /** How long a client may read nothing of a full buffer. */
  stallMs: number
  onSent(): void
  onFault(error: unknown): void
  onClosed(reason: StreamEnd, events: number): void
}

/**
 * Bytes buffered for one client when a page is read for it, besides the buffers of its connection, and bytes of the page:
 * 256 KiB together, exceeded by at most an event.
 */
const MAX_BUFFERED_BYTES = 128 * 1024

/** A client that takes this much of a frame within `stallMs` is not cut off. */
const CHUNK_BYTES = 16 * 1024

/** Reconnection delay of clients; spread when a stopping process ends all streams at once. */
const RETRY_DELAY_MS = 3_000
const RETRY_JITTER_MS = 4_000

/**
 * Builds the stream of one client. It reads from its start to the position of the feed, and then joins the feed. When its
 * client does not keep up, it leaves the feed, waits until the buffer has room, and reads on from its position: no client
 * needs more memory than its buffer, and none delays another.
 */
export function createStream(options: StreamOptions): EventStream {
  const { organisationId, keys, start, feed, seal, stallMs } = options
  let { position, lastEventId } = start
  let isLive = false
  let events = 0
  let ending: StreamEnd | null = null
  let stalled: NodeJS.Timeout | undefined
  let unreadBytes = 0
  let onDrained: (() => void) | null = null
  const closed = new AbortController()

  const output = new Readable({
    highWaterMark: MAX_BUFFERED_BYTES,
    read() {
      clearTimeout(stalled)
      stalled = undefined
      onDrained?.()
      onDrained = null
    },
    destroy(error, callback) {
      clearTimeout(stalled)
      feed.leave(member)
      closed.abort()
      onDrained?.()
      options.onClosed(ending ?? 'client', events)
      callback(error)
    },
  })

  const isFull = (): boolean => stalled !== undefined

  function push(frame: Buffer): void {
    const hadRoom = output.push(frame.subarray(0, CHUNK_BYTES))
    for (let at = CHUNK_BYTES; at < frame.length; at += CHUNK_BYTES)
      output.push(frame.subarray(at, at + CHUNK_BYTES))
    if (!hadRoom) stalled ??= setTimeout(awaitReader, stallMs)
    unreadBytes = output.readableLength
  }

  /** Cuts off the client of a full buffer, unless it has read of it since this was checked before. */
  function awaitReader(): void {
    if (output.readableLength === unreadBytes) {
      cut('slow')
      return
    }
    unreadBytes = output.readableLength
    stalled = setTimeout(awaitReader, stallMs)
  }

  function cut(reason: StreamEnd): void {
    ending ??= reason
    output.destroy()
  }

  function send(event: StreamedEvent, frame: Buffer): void {
    push(frame)
    lastEventId = event.id
    events++
    options.onSent()
  }

  function sendPosition(id: string): void {
    push(positionFrame(id))
    lastEventId = id
  }

  function sendGap(): void {
    const id = seal(position)
    push(gapFrame(lastEventId, id))
    lastEventId = id
  }

  const member = {
    organisationId,
    offer(event: StreamedEvent, frame: Buffer): void {
      if (!isLive || event.sequence <= position.sequence) return
      position = { ...feed.position(), sequence: event.sequence }
      if (keys?.has(event.key) ?? true) send(event, frame)
      if (!isFull()) return
      isLive = false
      feed.leave(member)
      void catchUp()
    },
  }

  async function catchUp(): Promise<void> {
    try {
      while (ending === null && !output.destroyed) {
        if (isFull()) await new Promise<void>((resolve) => (onDrained = resolve))
        else if (position.sequence < feed.position().sequence) await readNext(feed.position())
        else {
          isLive = true
          feed.join(member)
          return
        }
      }
    } catch (error) {
      if (closed.signal.aborted || ending !== null) return
      options.onFault(error)
      cut('fault')
    }
  }

  async function readNext(upTo: StreamPosition): Promise<void> {
    const range = { after: position.sequence, upTo, maxBytes: MAX_BUFFERED_BYTES }
    const page = await options.readPage(range, closed.signal)
    if (ending !== null || output.destroyed) return
    if (page.horizon > position.sequence) {
      position = upTo
      sendGap()
      return
    }
    for (const event of page.events) send(event, eventFrame(event))
    position = { ...upTo, sequence: page.upTo }
  }

  push(retryFrame(RETRY_DELAY_MS))
  if (start.isGap) sendGap()
  else sendPosition(lastEventId ?? seal(position))
  void catchUp()

  return {
    output,
    beat() {
      if (ending !== null || isFull()) return
      // A live stream is past everything that was offered to it, whether or not it was for its client.
      if (isLive && feed.offered().sequence > position.sequence) position = feed.offered()
      sendPosition(seal(position))
    },
    end(reason) {
      if (ending !== null || output.destroyed) return
      if (isFull()) {
        cut(reason)
        return
      }
      ending = reason
      feed.leave(member)
      onDrained?.()
      if (reason === 'stopped')
        output.push(retryFrame(RETRY_DELAY_MS + Math.round(Math.random() * RETRY_JITTER_MS)))
      output.push(null)
      stalled = setTimeout(() => output.destroy(), stallMs)
    },
  }
}

import type { StreamedEvent } from '../db/queries/event-stream.ts'

/**
 * Returns the frame of an event, or of its erasure, in a `text/event-stream` (HTML standard, 9.2.6). An envelope has neither CR nor LF, so it is
 * one `data` field.
 */
export function eventFrame({ id, key, body }: StreamedEvent): Buffer {
  if (body === null)
    return Buffer.from(`id: ${id}\nevent: payload_erased\ndata: ${JSON.stringify({ event: key })}\n\n`)
  return Buffer.concat([Buffer.from(`id: ${id}\nevent: ${key}\ndata: `), body, Buffer.from('\n\n')])
}

/** Returns the frame that sets the client's reconnection delay. */
export function retryFrame(ms: number): string {
  return `retry: ${ms}\n\n`
}

/** A comment, for proxies and clients that close silent connections. */
const HEARTBEAT = ': heartbeat\n'

/**
 * Returns the frame of a position to resume from. It has data, since scripts in browsers and most libraries never learn of
 * an id without.
 */
export function positionFrame(id: string): string {
  return `${HEARTBEAT}id: ${id}\nevent: position\ndata: {}\n\n`
}

/** Returns the frame that reports missing events. `id`: the position to resume from. */
export function gapFrame(lastEventId: string | null, id: string): string {
  const data = JSON.stringify({
    lastEventId,
    detail: 'Events after lastEventId may be missing: it is not known here, or retention has passed it.',
  })
  return `id: ${id}\nevent: gap\ndata: ${data}\n\n`
}

import type { StreamedEvent } from '../db/queries/event-stream.ts'

/**
 * The pieces of a `text/event-stream` (HTML standard, 9.2.6). An envelope is one line, so it is one `data` field as it
 * is: neither CR nor LF is in it, and nothing else ends a line.
 */
export function eventFrame({ id, key, body }: StreamedEvent): Buffer {
  return Buffer.concat([Buffer.from(`id: ${id}\nevent: ${key}\ndata: `), body, Buffer.from('\n\n')])
}

/** How long a client is to wait before it connects again. */
export function retryFrame(ms: number): string {
  return `retry: ${ms}\n\n`
}

/** Nothing, for proxies and for clients that take a silent connection for a dead one. */
export const HEARTBEAT_FRAME = ': heartbeat\n\n'

/** Moves the place to resume from without an event: a block without data sets the client's last event id. */
export function markFrame(id: string): string {
  return `id: ${id}\n\n`
}

/** Says that events may be missing. `mark` is the place to resume from, where there is any. */
export function gapFrame(lastEventId: string | null, mark: string | null): string {
  const data = JSON.stringify({
    lastEventId,
    detail: 'Events after lastEventId may be missing: it is not known here, or retention has passed it.',
  })
  return `${mark === null ? '' : `id: ${mark}\n`}event: gap\ndata: ${data}\n\n`
}

import type { StreamedEvent } from '../db/queries/event-stream.ts'

/**
 * Returns the frame of an event in a `text/event-stream` (HTML standard, 9.2.6). An envelope has neither CR nor LF, so it is
 * one `data` field.
 */
export function eventFrame({ id, key, body }: StreamedEvent): Buffer {
  return Buffer.concat([Buffer.from(`id: ${id}\nevent: ${key}\ndata: `), body, Buffer.from('\n\n')])
}

/** Returns the frame that sets the client's reconnection delay. */
export function retryFrame(ms: number): string {
  return `retry: ${ms}\n\n`
}

/** A comment, for proxies and clients that close silent connections. */
export const HEARTBEAT_FRAME = ': heartbeat\n\n'

/** Returns the frame that sets the client's last event id without an event. */
export function markFrame(id: string): string {
  return `id: ${id}\n\n`
}

/** Returns the frame that reports missing events. `mark` is the id to resume after, if there is one. */
export function gapFrame(lastEventId: string | null, mark: string | null): string {
  const data = JSON.stringify({
    lastEventId,
    detail: 'Events after lastEventId may be missing: it is not known here, or retention has passed it.',
  })
  return `${mark === null ? '' : `id: ${mark}\n`}event: gap\ndata: ${data}\n\n`
}

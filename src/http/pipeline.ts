import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** What one connection may ask for and leave unread. */
export type PipelineLimits = {
  /** Requests of it that are handled at once. */
  maxHandled: number
  /** Bytes of answers that may be ready and not sent when the next request is begun with. */
  maxUnsentBytes: number
  /** Requests sent ahead without their answers; the last of them is the last one answered. */
  maxPipelined: number
  /** How long a client may take to read an answer that is ready. */
  writeTimeoutMs: number
}

export type HandleRequest = (request: IncomingMessage, response: ServerResponse) => void

const LIMITS: PipelineLimits = {
  maxHandled: 16,
  maxUnsentBytes: 256 * 1024,
  maxPipelined: 128,
  writeTimeoutMs: 30_000,
}

/** Node has parsed a whole chunk before anybody can stop it; what comes beyond one chunk is a flood. */
const MAX_PARSED_AFTER_LAST = 4_000

/**
 * Has `handle` answer the requests of one connection in their order, so that a client that sends many ahead and reads
 * nothing costs little memory, and for a short time. A client that reads notices nothing.
 */
export function createPipeline(
  socket: Socket,
  handle: HandleRequest,
  limits: Partial<PipelineLimits> = {},
): HandleRequest {
  const { maxHandled, maxUnsentBytes, maxPipelined, writeTimeoutMs } = { ...LIMITS, ...limits }
  const handled = new Map<ServerResponse, NodeJS.Timeout | null>()
  let waiting: [IncomingMessage, ServerResponse][] = []
  let parsedAfterLast: number | null = null

  // Answers that are not the connection's current one hear nothing of its end.
  socket.once('close', () => {
    for (const timer of handled.values()) if (timer !== null) clearTimeout(timer)
    handled.clear()
    waiting = []
  })

  function beginNext(): void {
    while (waiting.length > 0 && handled.size < maxHandled && unsentBytes() < maxUnsentBytes) {
      const [[request, response]] = waiting.splice(0, 1) as [[IncomingMessage, ServerResponse]]
      begin(request, response)
    }
  }

  function begin(request: IncomingMessage, response: ServerResponse): void {
    handled.set(response, null)
    response.once('prefinish', () => {
      // The answer is ready, and from now on it is the client's to take. A stream has limits of its own until its end.
      if (handled.has(response))
        handled.set(
          response,
          setTimeout(() => socket.destroy(), writeTimeoutMs),
        )
    })
    response.once('close', () => {
      const timer = handled.get(response)
      if (timer) clearTimeout(timer)
      handled.delete(response)
      beginNext()
    })
    handle(request, response)
  }

  function unsentBytes(): number {
    let bytes = 0
    for (const response of handled.keys()) bytes += response.writableLength
    return bytes
  }

  return (request, response) => {
    if (parsedAfterLast !== null) {
      if (++parsedAfterLast > MAX_PARSED_AFTER_LAST) socket.destroy()
      return
    }
    if (handled.size + waiting.length >= maxPipelined - 1) {
      // RFC 9112, 9.6: the answer says that it is the last one, and the client asks again for the rest.
      response.shouldKeepAlive = false
      parsedAfterLast = 0
    }
    waiting.push([request, response])
    beginNext()
  }
}

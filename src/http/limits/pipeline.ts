import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { ProblemError } from '../../problem-error.ts'
import { READ_DELAY_MS } from '../../timers.ts'

/** Limits of one connection. */
export type PipelineLimits = {
  /** Requests that are handled at once. */
  maxHandled: number
  /** Unsent bytes of finished answers from which on no further request is handled. */
  maxUnsentBytes: number
  /** Requests without an answer; the one at the limit is the last that is answered. */
  maxPipelined: number
  /** How long a client may take to read an answer that is ready. */
  writeTimeoutMs: number
}

export type HandleRequest = (request: IncomingMessage, response: ServerResponse) => void

/** The requests of one connection. */
export type Pipeline = {
  handle: HandleRequest
  /**
   * Ends the connection, on which Node.js could not parse what arrived, or not in time; `code` is that of its error. It is
   * answered with a problem document unless an answer written now would be taken for that of another request.
   */
  refuseUnreadable(code: string | undefined): void
}

const LIMITS: PipelineLimits = {
  maxHandled: 16,
  maxUnsentBytes: 256 * 1024,
  maxPipelined: 128,
  writeTimeoutMs: 30_000,
}

/** Node parses a whole chunk before it can be stopped; more requests than fit into one chunk are a flood. */
const MAX_PARSED_AFTER_LAST = 4_000

/** How long a client may take to read the answer to what could not be read. */
const CLOSE_AFTER_MS = 5_000

/**
 * Passes the requests of one connection to `handle` in their order and within `limits`, so that a client that pipelines
 * many requests and reads no answer takes little memory for a short time.
 */
export function createPipeline(
  socket: Socket,
  handle: HandleRequest,
  limits: Partial<PipelineLimits> = {},
): Pipeline {
  const { maxHandled, maxUnsentBytes, maxPipelined, writeTimeoutMs } = { ...LIMITS, ...limits }
  const handled = new Map<ServerResponse, NodeJS.Timeout | null>()
  let waiting: [IncomingMessage, ServerResponse][] = []
  let parsedAfterLast: number | null = null
  let latest: ServerResponse | null = null
  let isRefused = false

  // Node closes only the connection's current response.
  socket.once('close', () => {
    for (const timer of handled.values()) if (timer !== null) clearTimeout(timer)
    handled.clear()
    waiting = []
  })

  function handleNext(): void {
    while (waiting.length > 0 && handled.size < maxHandled && unsentBytes() < maxUnsentBytes) {
      const [[request, response]] = waiting.splice(0, 1) as [[IncomingMessage, ServerResponse]]
      handleOne(request, response)
    }
  }

  function handleOne(request: IncomingMessage, response: ServerResponse): void {
    handled.set(response, null)
    response.once('prefinish', () => {
      // The answer is complete: from now on the client has to read it. Before that a stream has its own limits.
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
      handleNext()
    })
    handle(request, response)
  }

  function unsentBytes(): number {
    let bytes = 0
    for (const response of handled.keys()) bytes += response.writableLength
    return bytes
  }

  function accept(request: IncomingMessage, response: ServerResponse): void {
    latest = response
    if (parsedAfterLast !== null) {
      if (++parsedAfterLast > MAX_PARSED_AFTER_LAST) socket.destroy()
      return
    }
    if (handled.size + waiting.length >= maxPipelined - 1) {
      // RFC 9112, 9.6: the answer is marked as the last one, and the client repeats the rest on a new connection.
      response.shouldKeepAlive = false
      parsedAfterLast = 0
    }
    waiting.push([request, response])
    handleNext()
  }

  /**
   * Returns what an answer written now would belong to: the head of a request, or the body of one without an answer; null
   * while another answer is to be sent, or was sent before the body had ended.
   */
  function unreadablePart(): 'head' | 'body' | null {
    const open = [...handled.keys()]
    if (waiting.length > 0) return null
    if (latest === null || latest.req.complete) return open.length === 0 ? 'head' : null
    return open.length === 1 && open[0] === latest && !latest.headersSent ? 'body' : null
  }

  return {
    handle: accept,
    refuseUnreadable(code) {
      // The rest of what is sent is read and dropped: closing with bytes unread would take the answer with it.
      if (isRefused) return
      const part = unreadablePart()
      if (socket.bytesRead === 0) {
        // A first request may be on its way, or come during a pause of this process, and would take this for its answer.
        setTimeout(() => {
          if (socket.bytesRead === 0) socket.destroy()
        }, READ_DELAY_MS).unref()
        return
      }
      if (part === null || !socket.writable || code === 'ECONNRESET') {
        socket.destroy()
        return
      }
      isRefused = true
      socket.end(serialise(problemOf(code, part)))
      setTimeout(() => socket.destroy(), CLOSE_AFTER_MS).unref()
    },
  }
}

function problemOf(code: string | undefined, part: 'head' | 'body'): ProblemError {
  if (code === 'HPE_HEADER_OVERFLOW') return new ProblemError('headers_too_large')
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new ProblemError('request_timeout')
  return new ProblemError(part === 'body' ? 'incomplete_body' : 'malformed_request')
}

function serialise(error: ProblemError): string {
  const { status } = error.problem
  const body = error.document()
  const headers = { ...problemHeaders(body), date: new Date().toUTCString(), connection: 'close' }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`, ...lines, '', body].join('\r\n')
}

/** Returns the headers of a problem document that the app did not write. */
export function problemHeaders(body: string): Record<string, string | number> {
  return {
    'content-type': 'application/problem+json',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
  }
}

import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { ProblemError } from '../../problem-error.ts'
import { createTally } from '../../tally.ts'
import { READ_DELAY_MS } from '../../timers.ts'

/** Limits of one connection. */
export type PipelineLimits = {
  /** Requests without an answer; the one at the limit is the last that is answered. */
  maxPipelined: number
  /** How long a client may take to read an answer that is ready. */
  writeTimeoutMs: number
}

/** The answers of all connections that their clients have not read. */
export type UnreadAnswers = {
  /** Counts what waits for the client of a connection. Beyond the bound, those for whom most waits are disconnected. */
  add(socket: Socket): void
  remove(socket: Socket): void
}

export function createUnreadAnswers(maxBytes: number): UnreadAnswers {
  const sizes = createTally<Socket>()
  const remove = (socket: Socket): void => sizes.add(socket, -sizes.of(socket))

  return {
    add(socket) {
      sizes.add(socket, socket.writableLength)
      while (sizes.total() > maxBytes) {
        const largest = sizes.largest()
        if (largest === undefined) return
        largest.destroy()
        remove(largest)
      }
    },
    remove,
  }
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
  maxPipelined: 128,
  writeTimeoutMs: 30_000,
}

/** Node parses a whole chunk before it can be stopped; more requests than fit into one chunk are a flood. */
const MAX_PARSED_AFTER_LAST = 4_000

/** Node's code where a request's head, or all of it, did not come in time. */
const TIMED_OUT = 'ERR_HTTP_REQUEST_TIMEOUT'

/** How long the body of a request may take whose head came late. */
const LATE_BODY_MS = 5_000

/** How long a client may take to read the answer to what could not be read. */
const CLOSE_AFTER_MS = 5_000

/**
 * Passes the requests of one connection to `handle` one after another and within `limits`: the next one when the answer
 * has been sent. A client that pipelines many requests and reads no answer takes the memory of one for a short time.
 */
export function createPipeline(
  socket: Socket,
  handle: HandleRequest,
  unread: UnreadAnswers,
  limits: Partial<PipelineLimits> = {},
): Pipeline {
  const { maxPipelined, writeTimeoutMs } = { ...LIMITS, ...limits }
  let current: ServerResponse | null = null
  let writeTimer: NodeJS.Timeout | undefined
  let waiting: [IncomingMessage, ServerResponse][] = []
  let parsedAfterLast: number | null = null
  let latest: ServerResponse | null = null
  /** Of the request whose time-out Node.js reported last, until it is decided. */
  let late: ServerResponse | 'head' | null = null
  let isRefused = false

  socket.once('close', () => {
    clearTimeout(writeTimer)
    unread.remove(socket)
    current = null
    waiting = []
  })

  function handleNext(): void {
    const next = current === null ? waiting.shift() : undefined
    if (next === undefined) return
    const [request, response] = next
    current = response
    response.once('prefinish', () => {
      // The answer is complete: from now on the client has to read it. Before that a stream has its own limits.
      if (current !== response) return
      writeTimer = setTimeout(() => socket.destroy(), writeTimeoutMs)
      unread.add(socket)
    })
    response.once('close', () => {
      clearTimeout(writeTimer)
      unread.remove(socket)
      current = null
      // RFC 9112, 9.6: nothing is handled after an answer that announced the close.
      if (!socket.writable) waiting = []
      handleNext()
    })
    handle(request, response)
  }

  function accept(request: IncomingMessage, response: ServerResponse): void {
    latest = response
    if (late === 'head') late = response
    if (parsedAfterLast !== null) {
      if (++parsedAfterLast > MAX_PARSED_AFTER_LAST) socket.destroy()
      return
    }
    if (waiting.length + (current === null ? 0 : 1) >= maxPipelined - 1) {
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
    if (waiting.length > 0) return null
    if (latest === null || latest.req.complete) return current === null ? 'head' : null
    return current === latest && !latest.headersSent ? 'body' : null
  }

  /**
   * Refuses a request that did not come in time, unless all of it came during a pause of this process: Node.js reports
   * a request once, and no longer bounds what is still to come of it.
   */
  function refuseLate(): void {
    const isBody = latest?.req.complete === false
    late = isBody ? latest : 'head'
    const decide = (): void => {
      if (late === 'head' || late?.req.complete === false) refuse(TIMED_OUT)
      late = null
    }
    setTimeout(() => {
      // A head that came meanwhile may have a body, which is read once its sender is known.
      if (isBody || late === 'head') decide()
      else setTimeout(decide, LATE_BODY_MS).unref()
    }, READ_DELAY_MS).unref()
  }

  function refuse(code: string | undefined): void {
    // The rest of what is sent is read and dropped: closing with bytes unread would take the answer with it.
    if (isRefused) return
    isRefused = true
    const part = unreadablePart()
    // A client that has sent nothing would take an answer for that to its first request, which may be on its way.
    if (socket.bytesRead === 0 || !socket.writable || code === 'ECONNRESET') socket.destroy()
    else if (part !== null) {
      socket.end(serialise(problemOf(code, part)))
      setTimeout(() => socket.destroy(), CLOSE_AFTER_MS).unref()
    } else if (current === null) socket.destroy()
    else {
      // The answer in progress is sent; the body of what waits is not read before.
      waiting = []
      parsedAfterLast = 0
      current.once('close', () => socket.destroySoon())
    }
  }

  return {
    handle: accept,
    refuseUnreadable: (code) => (code === TIMED_OUT ? refuseLate() : refuse(code)),
  }
}

function problemOf(code: string | undefined, part: 'head' | 'body'): ProblemError {
  if (code === 'HPE_HEADER_OVERFLOW') return new ProblemError('headers_too_large')
  if (code === TIMED_OUT) return new ProblemError('request_timeout')
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

import { Client } from 'undici'
import type { OpenSocket } from './pinned-connector.ts'
import { OutboundError } from './failure-code.ts'

type Request = { path: string; headers: Record<string, string>; body: Buffer }

/** What takes an answer as it comes. */
type AnswerSink = {
  /** Status and headers, once; what it throws ends the POST. */
  head(statusCode: number, headers: Record<string, string | string[] | undefined>): void
  /** A part of the body; false when no more is wanted. */
  chunk(part: Buffer): boolean
}

/** One open socket that speaks HTTP/1.1, for one POST at a time. `openedAtMs` is of `performance.now()`. */
export type Connection = OpenSocket & {
  openedAtMs: number
  /** True when the answer was read to its clean end, false when its sink wanted no more. */
  post(request: Request, sink: AnswerSink): Promise<boolean>
  /** Works at every stage and at once: what is not yet written then is never written. */
  destroy(): void
}

const MAX_HEADER_BYTES = 16 * 1024
// All that may come on account of one POST. An endless row of early hints or one endless status line has no bound of
// its own, and would keep the event loop busy until the deadline.
const MAX_ANSWER_BYTES = 4 * 1024 * 1024
// Once the status is known the outcome is too: a body that stalls is not worth the rest of the deadline.
const BODY_IDLE_TIMEOUT_MS = 5000

// Servers close idle connections without notice, the common ones after 2 seconds or more. A request that crosses such
// a close is lost, so we close first.
const IDLE_MS = 1500
// With a `Keep-Alive: timeout=…` in the answer: this much sooner, and never later than the maximum.
const HINT_MARGIN_MS = 1000
const MAX_IDLE_MS = 8000

/**
 * Puts an HTTP client of its own on a socket. undici opens another socket when the one it has is gone, to send again
 * what it takes for unsent; here it gets this socket once and never a second, so no POST is made twice behind our back.
 * @param keepAlive - ask the endpoint to leave the connection open; undici then closes it when it has lain idle.
 */
export function openConnection(
  origin: string,
  { socket, roundTripMs }: OpenSocket,
  keepAlive: boolean,
): Connection {
  let isGiven = false
  let readBefore = 0

  const client = new Client(origin, {
    connect: (_target, callback) => {
      // Not at once: undici would not notice that it has a socket.
      queueMicrotask(() => {
        if (isGiven) {
          callback(connectionGone(), null)
          return
        }
        isGiven = true
        callback(null, socket)
        socket.on('readable', refuseFlood)
      })
    },
    pipelining: keepAlive ? 1 : 0,
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: MAX_IDLE_MS,
    keepAliveTimeoutThreshold: HINT_MARGIN_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
    // Off: every 1xx would restart it. The deadline is ours.
    headersTimeout: 0,
    bodyTimeout: BODY_IDLE_TIMEOUT_MS,
    allowH2: false,
  })

  function refuseFlood(): void {
    if (socket.bytesRead - readBefore > MAX_ANSWER_BYTES) socket.destroy(tooMuch())
  }

  // Not `request`: its stream for the answer's body costs as much as all the rest of a POST.
  function post({ path, headers, body }: Request, sink: AnswerSink): Promise<boolean> {
    readBefore = socket.bytesRead
    return new Promise((resolve, reject) => {
      client.dispatch(
        { method: 'POST', path, headers, body },
        {
          onRequestStart: () => undefined,
          onResponseStart(_controller, statusCode, answerHeaders) {
            if (statusCode >= 200) sink.head(statusCode, answerHeaders)
          },
          onResponseData(controller, chunk) {
            if (sink.chunk(chunk)) return
            resolve(false)
            controller.abort(new Error('no more is wanted'))
          },
          onResponseEnd: () => resolve(true),
          onResponseError: (_controller, error) => reject(error),
        },
      )
    })
  }

  function destroy(): void {
    // A client that has not requested its socket yet does not destroy it.
    socket.destroy()
    client.destroy().catch(() => undefined)
  }

  return { socket, roundTripMs, openedAtMs: performance.now(), post, destroy }
}

function connectionGone(): OutboundError {
  return new OutboundError('connection_reset', 'The endpoint closed the connection before it had answered.')
}

function tooMuch(): OutboundError {
  return new OutboundError(
    'invalid_response',
    'The endpoint sent more than 4 MiB without an end of its answer.',
  )
}

import { setImmediate as nextLoopIteration } from 'node:timers/promises'
import { Client } from 'undici'
import type { OpenSocket } from './pinned-connector.ts'
import { isBrokenTls, OutboundError } from './failure-code.ts'

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
          onResponseError: (_controller, error) => reject(isBrokenTls(error) ? connectionGone() : error),
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

/** Holds idle connections for the next POST of the same key. */
export type ConnectionPool = {
  /** Removes and returns a connection of `key` that is open and silent; null without one. */
  take(key: string): Promise<Connection | null>
  /** Adds a connection whose last answer was read completely, or closes it. */
  add(key: string, connection: Connection): void
  /** Closes the idle connections of `key`. */
  drop(key: string): void
  /** Closes all idle connections, and every connection that is added later. */
  close(): void
}

/** A connection has to be silent for `restMs` and that many round trips before it is used again. */
export type PoolLimits = {
  maxIdlePerKey: number
  maxIdle: number
  maxAgeMs: number
  restMs: number
  restRoundTrips: number
}

type Idle = {
  connection: Connection
  /** When it has been silent for long enough, on `performance.now()`. */
  restedAtMs: number
  bytesRead: number
  /** Removes the connection: it is in use again, or its socket has closed. */
  forget: () => void
}

const DEFAULT_LIMITS: PoolLimits = {
  maxIdlePerKey: 256,
  maxIdle: 2_048,
  // A changed DNS answer, an expired certificate or a new policy counts for every request after this.
  maxAgeMs: 60_000,
  // Surplus bytes of an endpoint follow its answer closely, unless Nagle's algorithm delays them until we have
  // acknowledged the answer. Linux does so after 40 ms or one round trip; the rest then takes another one to come.
  restMs: 50,
  restRoundTrips: 2,
}

/**
 * Builds the pool. Nothing an endpoint sends of its own accord may be read as the answer to a later POST, so a
 * connection is reused only after it has been silent since its last answer for a while, and is still silent after the
 * event loop has polled its sockets once more.
 */
export function createConnectionPool(limits: Partial<PoolLimits> = {}): ConnectionPool {
  const { maxIdlePerKey, maxIdle, maxAgeMs, restMs, restRoundTrips } = { ...DEFAULT_LIMITS, ...limits }
  // Both in the order in which they were added.
  const idle = new Set<Idle>()
  const idleByKey = new Map<string, Idle[]>()
  let isClosed = false

  // Whatever had come before this instant has been read.
  let readUntilMs = -Infinity
  let reading: Promise<void> | null = null

  async function take(key: string): Promise<Connection | null> {
    for (;;) {
      const now = performance.now()
      const idleOfKey = idleByKey.get(key) ?? []
      // The one used last, so that surplus connections grow old.
      const entry =
        idleOfKey.findLast((one) => one.restedAtMs <= readUntilMs) ??
        idleOfKey.findLast((one) => one.restedAtMs <= now)
      if (entry === undefined) return null
      entry.forget()
      // Under load the sockets have been read since then.
      reading ??= readSockets()
      while (entry.restedAtMs > readUntilMs) await (reading ??= readSockets())
      if (isStillSilent(entry)) return entry.connection
      entry.connection.destroy()
    }
  }

  /**
   * Waits until the sockets have been read. The first `setImmediate` ends the current iteration of the event loop; only
   * the second guarantees that timers have run and sockets have been polled.
   */
  async function readSockets(): Promise<void> {
    const fromMs = performance.now()
    await nextLoopIteration()
    await nextLoopIteration()
    readUntilMs = fromMs
    reading = null
  }

  function add(key: string, connection: Connection): void {
    const { socket } = connection
    const same = idleByKey.get(key) ?? []
    if (isClosed || socket.destroyed || isOld(connection) || same.length >= maxIdlePerKey) {
      connection.destroy()
      return
    }
    const [oldest] = idle
    if (oldest !== undefined && idle.size >= maxIdle) close([oldest])
    const forget = (): void => {
      idle.delete(entry)
      const at = same.indexOf(entry)
      if (at !== -1) same.splice(at, 1)
      if (same.length === 0) idleByKey.delete(key)
      socket.off('close', forget)
    }
    const restedAtMs = performance.now() + restMs + restRoundTrips * connection.roundTripMs
    const entry: Idle = { connection, restedAtMs, bytesRead: socket.bytesRead, forget }
    idle.add(entry)
    same.push(entry)
    idleByKey.set(key, same)
    socket.on('close', forget)
  }

  /** Bytes that are no beginning of an answer (an empty line) do not move undici, but they are counted. */
  function isStillSilent({ connection, bytesRead }: Idle): boolean {
    const { socket } = connection
    if (socket.destroyed || socket.readableEnded || socket.bytesRead !== bytesRead) return false
    // The endpoint answered before it read the whole request.
    if (socket.writableLength > 0) return false
    return !isClosed && !isOld(connection)
  }

  function isOld({ openedAtMs }: Connection): boolean {
    return performance.now() - openedAtMs >= maxAgeMs
  }

  function close(entries: Iterable<Idle>): void {
    for (const entry of [...entries]) {
      entry.forget()
      entry.connection.destroy()
    }
  }

  return {
    take,
    add,
    drop: (key) => close(idleByKey.get(key) ?? []),
    close() {
      isClosed = true
      close(idle)
    },
  }
}

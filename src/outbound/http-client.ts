import { setMaxListeners } from 'node:events'
import { Client } from 'undici'
import { isSuccessStatus } from '../domain/attempt-outcome.ts'
import type { FailureCode } from '../domain/attempt-outcome.ts'
import { raceAbort } from './abort-race.ts'
import { createAddressGuard } from './address-guard.ts'
import { createConnector } from './connector.ts'
import type { Connect } from './connector.ts'
import { describeError, describeStatus } from './failure-code.ts'
import { OutboundError, formatSeconds } from './outbound-error.ts'
import { createResolver } from './resolver.ts'
import { captureHeaders, createBodyCapture } from './response-capture.ts'
import type { BodyCapture, CapturedResponse } from './response-capture.ts'

/** `headers` are sent as given; only host, connection, content-length and user-agent are added. */
type PostRequest = { url: string; headers: Record<string, string>; body: Buffer; signal?: AbortSignal }

/**
 * How one POST ended. Without success, `failureCode` and `error` say why; `statusCode` and `response` are what the
 * endpoint answered, as far as it came. `durationMs` comes from a clock that is never set back.
 */
export type PostResult = {
  succeeded: boolean
  failureCode: FailureCode | null
  statusCode: number | null
  error: string | null
  startedAt: Date
  durationMs: number
  response: CapturedResponse | null
}

export type HttpClient = {
  /** One POST, never repeated and never redirected. Rejects only with the reason of an aborted `signal`. */
  post(request: PostRequest): Promise<PostResult>
  /** Resolves when the POSTs under way have ended; none takes longer than `timeoutMs`. */
  close(): Promise<void>
}

export type HttpClientOptions = {
  allowHttp: boolean
  allowedCidrs: readonly string[]
  /** Bound on the whole exchange, from DNS to the last byte of the answer that is kept. */
  timeoutMs: number
  /** Bound on DNS, TCP and TLS together. */
  connectTimeoutMs: number
  /** How much of an answer's body is kept; reading stops there. */
  maxResponseBytes: number
  userAgent: string
  /** PEM certificates trusted besides the usual roots; for tests and development. */
  ca?: string
}

type Answer = { statusCode: number; headers: Record<string, string>; body: BodyCapture }

const MAX_HEADER_BYTES = 16 * 1024
// Once the status is known the outcome is too: a body that stalls is not worth the rest of the deadline.
const BODY_IDLE_TIMEOUT_MS = 5000

/** Builds what makes Posthorn's POSTs to customers. Reads no proxy settings: a proxy would dial where the guard cannot see. */
export function createHttpClient(options: HttpClientOptions): HttpClient {
  const guard = createAddressGuard(options)
  const connect = createConnector({ ...options, guard, resolver: createResolver({ guard }) })
  const underWay = new Set<Promise<unknown>>()

  function post(request: PostRequest): Promise<PostResult> {
    const posting = postOnce(request, connect, options)
    const settled = posting.then(noop, noop).finally(() => underWay.delete(settled))
    underWay.add(settled)
    return posting
  }

  async function close(): Promise<void> {
    await Promise.all(underWay)
  }

  return { post, close }
}

async function postOnce(
  request: PostRequest,
  connect: Connect,
  options: HttpClientOptions,
): Promise<PostResult> {
  request.signal?.throwIfAborted()
  // One signal, such as that of a shutdown, may stop any number of POSTs; Node warns from the eleventh on.
  if (request.signal !== undefined) setMaxListeners(0, request.signal)
  const stop = new AbortController()
  const forwardAbort = (): void => stop.abort(request.signal?.reason)
  request.signal?.addEventListener('abort', forwardAbort, { once: true })
  const startedAt = new Date()
  const startedAtMs = performance.now()
  const timer = setTimeout(() => stop.abort(deadlinePassed(options.timeoutMs)), options.timeoutMs)
  // Filled while the exchange runs, because a known status decides the outcome whatever becomes of the body.
  const received: { answer: Answer | null } = { answer: null }
  let thrown: unknown = null
  try {
    await raceAbort(exchange(request, connect, options, stop.signal, received), stop.signal)
  } catch (error) {
    request.signal?.throwIfAborted()
    thrown = stop.signal.aborted ? stop.signal.reason : error
  } finally {
    clearTimeout(timer)
    request.signal?.removeEventListener('abort', forwardAbort)
  }
  const durationMs = Math.round(performance.now() - startedAtMs)
  return { ...outcomeOf(received.answer, thrown), startedAt, durationMs }
}

/**
 * Sends the request on a connection of its own. undici does not heed an abort before it holds a socket, but
 * destroying its client works at every stage and at once: what is not yet written then is never written.
 * And on a shared connection an endpoint could answer the next request before it is sent.
 */
async function exchange(
  request: PostRequest,
  connect: Connect,
  options: HttpClientOptions,
  signal: AbortSignal,
  received: { answer: Answer | null },
): Promise<void> {
  const url = new URL(request.url)
  const client = new Client(url.origin, {
    connect: ({ protocol, hostname, port }, callback) => {
      connect({ protocol, hostname, port, signal }).then(
        (socket) => callback(null, socket),
        (error: unknown) => callback(error as Error, null),
      )
    },
    pipelining: 0,
    maxHeaderSize: MAX_HEADER_BYTES,
    // Off: every 1xx would restart it. The deadline is ours.
    headersTimeout: 0,
    bodyTimeout: BODY_IDLE_TIMEOUT_MS,
    allowH2: false,
  })
  const destroy = (): void => void client.destroy().catch(noop)
  signal.addEventListener('abort', destroy, { once: true })
  try {
    const { statusCode, headers, body } = await client.request({
      method: 'POST',
      path: `${url.pathname}${url.search}`,
      headers: { 'user-agent': options.userAgent, ...request.headers },
      body: request.body,
    })
    body.on('error', noop)
    if (statusCode > 599)
      throw new OutboundError('invalid_response', 'The endpoint answered with no valid status.')
    const answer = {
      statusCode,
      headers: captureHeaders(headers),
      body: createBodyCapture(options.maxResponseBytes),
    }
    received.answer = answer
    await readBody(body, answer.body)
  } finally {
    signal.removeEventListener('abort', destroy)
    destroy()
  }
}

async function readBody(body: AsyncIterable<unknown>, capture: BodyCapture): Promise<void> {
  for await (const chunk of body) {
    // Leaving the loop destroys the stream, and with it the connection.
    if (!capture.add(chunk as Buffer)) return
  }
  capture.end()
}

function outcomeOf(answer: Answer | null, thrown: unknown): Omit<PostResult, 'startedAt' | 'durationMs'> {
  if (answer === null) return { succeeded: false, ...describeError(thrown), statusCode: null, response: null }
  const { statusCode, headers, body } = answer
  const response = { headers, body: body.text(), truncated: body.isTruncated() }
  if (isSuccessStatus(statusCode))
    return { succeeded: true, failureCode: null, error: null, statusCode, response }
  return { succeeded: false, ...describeStatus(statusCode), statusCode, response }
}

function deadlinePassed(timeoutMs: number): OutboundError {
  return new OutboundError('timeout', `No answer within ${formatSeconds(timeoutMs)}.`)
}

function noop(): void {
  // Nothing to do: the outcome is already known.
}

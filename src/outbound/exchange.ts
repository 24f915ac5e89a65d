import { openConnection, type Connection, type ConnectionPool } from './connection-pool.ts'
import type { Connect, OnPhase } from './pinned-connector.ts'
import { OutboundError } from './failure-code.ts'
import { USER_AGENT } from './signed-headers.ts'

/**
 * `headers` are sent as given; only host, connection, content-length and user-agent are added.
 * `reuseKey` lets POSTs with the same key and origin follow each other on one connection. It has to name one receiver
 * of one customer, such as a webhook; left out, the POST has a connection of its own. `onPhase` as in {@link Connect}.
 */
export type PostRequest = {
  url: string
  headers: Record<string, string>
  body: Buffer
  signal?: AbortSignal
  reuseKey?: string
  onPhase?: OnPhase | undefined
}

/** What came back, filled in while it comes: a known status decides the outcome whatever becomes of the body. */
export type Answer = { statusCode: number; headers: Record<string, string>; body: BodyCapture }

/** How far a POST has come. `isBegun`: of its request a byte may have been written. */
export type Progress = { isBegun: boolean; answer: Answer | null }

export type ExchangeTools = {
  connect: Connect
  pool: ConnectionPool
  maxResponseBytes: number
}

/**
 * Sends the request once and reads the answer, until `signal` is aborted. @throws OutboundError, or what undici throws.
 */
export async function exchange(
  tools: ExchangeTools,
  request: PostRequest,
  signal: AbortSignal,
  progress: Progress,
): Promise<void> {
  const url = new URL(request.url)
  const key = request.reuseKey === undefined ? null : `${request.reuseKey} ${url.origin}`

  async function open(): Promise<Connection> {
    const { protocol, hostname, port, origin } = url
    const { onPhase } = request
    const socket = await tools.connect({ protocol, hostname, port, signal, onPhase })
    return openConnection(origin, socket, key !== null)
  }

  /**
   * Sends on a pooled connection. Returns false when there is none, or it closed before a byte of the request was
   * written. Once a byte is written the endpoint may have acted on it, whatever we see, and the POST is not made again.
   */
  async function sendOnPooled(reuseKey: string): Promise<boolean> {
    const pooled = await tools.pool.take(reuseKey)
    if (pooled === null) return false
    const writtenBefore = pooled.socket.bytesWritten
    try {
      await send(pooled)
      return true
    } catch (error) {
      if (signal.aborted || pooled.socket.bytesWritten !== writtenBefore) throw error
      progress.isBegun = false
      return false
    }
  }

  async function send(connection: Connection): Promise<void> {
    const destroy = (): void => connection.destroy()
    signal.addEventListener('abort', destroy, { once: true })
    let isReusable = false
    try {
      signal.throwIfAborted()
      progress.isBegun = true
      const body = createBodyCapture(tools.maxResponseBytes)
      isReusable = await connection.post(
        {
          path: `${url.pathname}${url.search}`,
          headers: { 'user-agent': USER_AGENT, ...request.headers },
          body: request.body,
        },
        {
          head(statusCode, headers) {
            if (statusCode > 599)
              throw new OutboundError('invalid_response', 'The endpoint answered with no valid status.')
            progress.answer = { statusCode, headers: captureHeaders(headers), body }
          },
          chunk: (part) => body.add(part),
        },
      )
      if (isReusable) body.end()
    } finally {
      signal.removeEventListener('abort', destroy)
      if (isReusable && key !== null) tools.pool.add(key, connection)
      else destroy()
    }
  }

  try {
    const isSent = key !== null && (await sendOnPooled(key))
    signal.throwIfAborted()
    if (!isSent) await send(await open())
  } catch (error) {
    // What one connection to an endpoint met, its others may meet as well.
    if (key !== null) tools.pool.drop(key)
    throw error
  }
}

/** The stored part of an answer. `truncated`: the endpoint sent, or announced, more body than is stored here. */
export type CapturedResponse = { headers: Record<string, string>; body: string; truncated: boolean }

/** Collects body bytes up to a bound. */
type BodyCapture = {
  /** Keeps what fits of `chunk`; false when the bound is passed, so that reading can stop. */
  add(chunk: Buffer): boolean
  /** The endpoint's body ended as it should. */
  end(): void
  text(): string
  isTruncated(): boolean
}

/** Bytes that are kept of the body of an answer. What is no UTF-8, or is replaced, takes three times as many as text. */
export const MAX_RESPONSE_BYTES = 32 * 1024

// As many bytes as undici accepts (http-client.ts), so that a row of the attempt table has a bounded size.
const MAX_HEADERS_BYTES = 16 * 1024
/** Stands for a value that had no room left. */
const TOO_LONG = '[not kept: too long]'
/** Every control but tab and line ends, and what changes the direction of text: embeddings, overrides, isolates. */
const UNSAFE = /[^\P{Cc}\t\n\r]|[\u202a-\u202e\u2066-\u2069]/gu
const decoder = new TextDecoder('utf-8')
const REDACTED = '[redacted]'
/**
 * Response headers whose values are stored: they describe the answer and help to find the request in the receiver's
 * log. Whatever else a server invents may carry a credential. docs/api.md lists them.
 */
export const STORED_HEADERS: ReadonlySet<string> = new Set([
  'age',
  'allow',
  'cache-control',
  'cf-ray',
  'connection',
  'content-encoding',
  'content-language',
  'content-length',
  'content-type',
  'date',
  'expires',
  'keep-alive',
  'last-modified',
  'ratelimit',
  'ratelimit-limit',
  'ratelimit-policy',
  'ratelimit-remaining',
  'ratelimit-reset',
  'request-id',
  'retry-after',
  'server',
  'traceparent',
  'transfer-encoding',
  'vary',
  'via',
  'x-amzn-requestid',
  'x-amzn-trace-id',
  'x-cache',
  'x-correlation-id',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'x-request-id',
  'x-served-by',
  'x-trace-id',
])

/**
 * Headers as they are stored: lower-case names, repeated ones joined, values of `STORED_HEADERS` only, 16 KiB in all.
 */
function captureHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string> {
  const captured: [string, string][] = []
  let roomBytes = MAX_HEADERS_BYTES

  /** Text of one byte per character grows when it is stored as UTF-8, so even undici's bound can be passed. */
  function keep(name: string, text: string): boolean {
    const sizeBytes = Buffer.byteLength(JSON.stringify([name, text]))
    if (sizeBytes > roomBytes) return false
    captured.push([name, text])
    roomBytes -= sizeBytes
    return true
  }

  for (const [rawName, rawValue] of Object.entries(headers)) {
    if (rawValue === undefined) continue
    const name = storable(rawName.toLowerCase())
    const joined = Array.isArray(rawValue) ? rawValue.join(', ') : rawValue
    const value = STORED_HEADERS.has(name) ? storable(joined) : REDACTED
    if (!keep(name, value)) keep(name, TOO_LONG)
  }
  // fromEntries defines own properties, so a header called __proto__ is just a header.
  return Object.fromEntries(captured)
}

/** Collects at most `maxBytes` of a body as text. Bytes that are no UTF-8 become U+FFFD; nothing is inflated. */
function createBodyCapture(maxBytes: number): BodyCapture {
  const chunks: Buffer[] = []
  let capturedBytes = 0
  let isWhole = false
  let isOverflowing = false

  return {
    add(chunk) {
      const part = chunk.subarray(0, maxBytes - capturedBytes)
      chunks.push(part)
      capturedBytes += part.length
      isOverflowing ||= part.length < chunk.length
      return !isOverflowing
    },
    end() {
      isWhole = true
    },
    text: () => storable(decoder.decode(Buffer.concat(chunks))),
    isTruncated: () => isOverflowing || !isWhole,
  }
}

/**
 * PostgreSQL's text and jsonb refuse U+0000; the other controls steer terminals, and the ones of direction make a page
 * show another text than it contains. Decoding has seen to it that there are no lone surrogates.
 */
function storable(text: string): string {
  return text.replaceAll(UNSAFE, '\ufffd')
}

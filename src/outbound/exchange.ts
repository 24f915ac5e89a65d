import { openConnection, type Connection } from './connection.ts'
import type { ConnectionPool } from './connection-pool.ts'
import type { Connect } from './connector.ts'
import { OutboundError } from './outbound-error.ts'
import { captureHeaders, createBodyCapture, type BodyCapture } from './response-capture.ts'

/**
 * `headers` are sent as given; only host, connection, content-length and user-agent are added.
 * `reuseKey` lets POSTs with the same key and origin follow each other on one connection. It has to name one receiver
 * of one customer, such as a webhook; left out, the POST has a connection of its own.
 */
export type PostRequest = {
  url: string
  headers: Record<string, string>
  body: Buffer
  signal?: AbortSignal
  reuseKey?: string
}

/** What came back, filled in while it comes: a known status decides the outcome whatever becomes of the body. */
export type Answer = { statusCode: number; headers: Record<string, string>; body: BodyCapture }

/** How far a POST has come. `isBegun`: of its request a byte may have been written. */
export type Progress = { isBegun: boolean; answer: Answer | null }

export type ExchangeTools = {
  connect: Connect
  pool: ConnectionPool
  maxResponseBytes: number
  userAgent: string
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
    return openConnection(origin, await tools.connect({ protocol, hostname, port, signal }), key !== null)
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
          headers: { 'user-agent': tools.userAgent, ...request.headers },
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

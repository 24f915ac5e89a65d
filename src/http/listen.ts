import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type Koa from 'koa'

/** Whole request within this time, so that a slow sender cannot hold a connection. */
const REQUEST_TIMEOUT_MS = 30_000
const HEADERS_TIMEOUT_MS = 10_000

/** What requests under way may still take when the process stops; a sender that stalls must not hold it up. */
const CLOSE_GRACE_MS = 3_000

export type Listening = { url: string; port: number; close(): Promise<void> }

/** Listens on `host:port` (0 for any free port). `close` answers what is under way, cuts off what stalls, and ends. */
export async function listen(
  app: Koa,
  options: { host: string; port: number; closeGraceMs?: number },
): Promise<Listening> {
  const { closeGraceMs = CLOSE_GRACE_MS } = options
  const handler = app.callback()
  const server = createServer(
    { requestTimeout: REQUEST_TIMEOUT_MS, headersTimeout: HEADERS_TIMEOUT_MS },
    (request, response) => {
      void handler(request, response)
    },
  )
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, options.host, resolve)
  })
  const { port } = server.address() as AddressInfo
  const host = options.host.includes(':') ? `[${options.host}]` : options.host
  return {
    url: `http://${host}:${port}`,
    port,
    close: () =>
      new Promise((resolve) => {
        const cutOff = setTimeout(() => server.closeAllConnections(), closeGraceMs)
        server.close(() => {
          clearTimeout(cutOff)
          resolve()
        })
        server.closeIdleConnections()
      }),
  }
}

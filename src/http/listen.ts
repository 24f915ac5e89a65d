import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type Koa from 'koa'
import { ProblemError } from '../problem-error.ts'
import { createTrustedProxies, type TrustedProxies, senderNetwork } from './middleware/trusted-proxies.ts'
import {
  createPipeline,
  createUnreadAnswers,
  problemHeaders,
  type HandleRequest,
  type Pipeline,
  type PipelineLimits,
} from './limits/pipeline.ts'
import { portError } from '../free-port.ts'
import { createTally } from '../tally.ts'

/** Limits how long a slow sender can occupy a connection with one request. */
const REQUEST_TIMEOUT_MS = 30_000
const HEADERS_TIMEOUT_MS = 10_000

/** Longer than the minute for which proxies keep connections: one that is being closed here may get a POST there. */
const KEEP_ALIVE_TIMEOUT_MS = 75_000

/** How often Node.js checks for connections beyond these limits; its default would add half a minute to each. */
const TIMEOUT_CHECK_INTERVAL_MS = 1_000

/** Far more than clients that read leave; with as many answers as connections a process could run out of memory. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024

/** How long requests in flight may take when the process stops. */
const CLOSE_GRACE_MS = 3_000

/** For a listener with few clients, such as that of the metrics. */
const DEFAULT_MAX_CONNECTIONS = 200

const PROBES: ReadonlySet<string> = new Set(['/healthz', '/readyz'])

export type Listening = { url: string; port: number; close(): Promise<void> }

export type ListenOptions = {
  host: string
  /** 0 for any free port. */
  port: number
  maxConnections?: number
  /** Ranges of addresses that may take more than the share of one sender: they carry many. */
  trustedProxies?: readonly string[]
  /** Called for a request, or a connection, that was refused because there are too many connections. */
  onRefused?: () => void
  closeGraceMs?: number
  pipelineLimits?: Partial<PipelineLimits>
  /** What clients have not read of their answers, on all connections. */
  maxUnreadBytes?: number
}

/**
 * Listens on `host:port`. Memory is bounded: connections and pipelined requests are limited, and a client that does not
 * read its answers, or does not send its request, is disconnected. `close` answers the requests in flight and disconnects those that stall.
 */
export async function listen(app: Koa, options: ListenOptions): Promise<Listening> {
  const { maxConnections = DEFAULT_MAX_CONNECTIONS, onRefused = () => undefined } = options
  const proxies = createTrustedProxies(options.trustedProxies ?? [])
  const { closeGraceMs = CLOSE_GRACE_MS } = options
  const handler = app.callback()
  const handle: HandleRequest = (request, response) => {
    if (request.httpVersion === '1.1' && request.headers.host === undefined) refuse(response, NO_HOST)
    else void handler(request, response)
  }
  const handleProbe: HandleRequest = (request, response) => {
    if (PROBES.has(request.url ?? '')) {
      response.shouldKeepAlive = false
      handle(request, response)
      return
    }
    onRefused()
    refuse(response, TOO_MANY_CONNECTIONS)
  }
  const pipelines = new WeakMap<Socket, Pipeline>()
  const handleOfSocket: HandleRequest = (request, response) =>
    pipelines.get(request.socket)?.handle(request, response)
  const unread = createUnreadAnswers(options.maxUnreadBytes ?? MAX_UNREAD_BYTES)
  const admit = createAdmission(maxConnections, proxies)

  const server = createServer(
    {
      requestTimeout: REQUEST_TIMEOUT_MS,
      headersTimeout: HEADERS_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
      connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL_MS,
      // `handle` refuses a request without one, with a problem document.
      requireHostHeader: false,
    },
    handleOfSocket,
  )
  // `Expect` with anything but `100-continue` (RFC 9110, 10.1.1) asks for nothing that the answer depends on.
  server.on('checkExpectation', handleOfSocket)
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    const pipeline = pipelines.get(socket)
    if (pipeline === undefined) socket.destroy()
    else pipeline.refuseUnreadable(error.code)
  })
  server.on('connection', (socket) => {
    const admitted = admit(socket)
    if (admitted === 'refused') {
      socket.destroy()
      onRefused()
      return
    }
    const handleRequest = admitted === 'probes' ? handleProbe : handle
    pipelines.set(socket, createPipeline(socket, handleRequest, unread, options.pipelineLimits))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, options.host, resolve)
  })
  // Raised by a connection that cannot be accepted; without a listener it would end the process.
  server.on('error', () => undefined)
  const { port } = server.address() as AddressInfo
  const host = options.host.includes(':') ? `[${options.host}]` : options.host
  return {
    url: `http://${host}:${port}`,
    port,
    close: () =>
      new Promise((resolve) => {
        const timer = setTimeout(() => server.closeAllConnections(), closeGraceMs)
        server.close(() => {
          clearTimeout(timer)
          resolve()
        })
        server.closeIdleConnections()
      }),
  }
}

const TOO_MANY_CONNECTIONS = new ProblemError('too_many_connections', {
  detail: 'This process, or this address, has as many connections open as it may have. Try again.',
  headers: { 'retry-after': '2' },
})

const NO_HOST = new ProblemError('malformed_request', { detail: 'The request has no Host header.' })

/** Answers without the app, and closes the connection. */
function refuse(response: ServerResponse, error: ProblemError): void {
  response.shouldKeepAlive = false
  const body = error.document()
  response.writeHead(error.problem.status, { ...problemHeaders(body), ...error.headers }).end(body)
}

/** What a new connection may be used for; `probes`: every other request on it is refused. */
type Admitted = 'all' | 'probes' | 'refused'

/** Connections beyond the limit, on which probes are answered. */
const MAX_PROBE_CONNECTIONS = 64

/** One sender may hold this part of all connections, so that silent ones of its own do not keep out the others. */
const SHARE_OF_SENDER = 1 / 2

/**
 * Returns a function that admits connections, each of which counts until it closes: up to `maxConnections`, of one sender
 * up to its share: an IPv4 address or a /64 of IPv6. A trusted proxy has no share, since it carries many senders.
 */
function createAdmission(
  maxConnections: number,
  proxies: Pick<TrustedProxies, 'has'>,
): (socket: Socket) => Admitted {
  const maxOfSender = Math.ceil(maxConnections * SHARE_OF_SENDER)
  const open = createTally()
  let openForProbes = 0

  return (socket) => {
    // Empty once the connection is gone.
    const address = socket.remoteAddress ?? ''
    const sender = senderNetwork(address)
    const hasShare = open.of(sender) < maxOfSender || proxies.has(address)
    if (open.total() < maxConnections && hasShare) {
      open.add(sender, 1)
      socket.once('close', () => open.add(sender, -1))
      return 'all'
    }
    if (openForProbes >= MAX_PROBE_CONNECTIONS) return 'refused'
    openForProbes++
    socket.once('close', () => openForProbes--)
    return 'probes'
  }
}

/** What listens, and the variables that say where. */
export type Listener = { what: string; hostVariable: string; portVariable: string }

/** Listens like `listen`. Throws an error that names the variable to change. */
export async function listenInWords(
  { what, hostVariable, portVariable }: Listener,
  app: Koa,
  options: ListenOptions,
): Promise<Listening> {
  try {
    return await listen(app, options)
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException
    if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
      const cure = `Set ${hostVariable} to an address of this machine.`
      throw new Error(`${options.host} (${what}) cannot be listened on: ${message}. ${cure}`, {
        cause: error,
      })
    }
    throw portError(error, { port: options.port, what, variable: portVariable })
  }
}

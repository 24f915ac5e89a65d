import { once } from 'node:events'
import * as net from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import * as tls from 'node:tls'
import { createHttpClient } from '../../../src/outbound/http-client.ts'
import type { HttpClient, HttpClientOptions } from '../../../src/outbound/http-client.ts'

/** A whole answer, after which the connection stays open. */
export const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'
/** An answer of an endpoint that closes idle connections after so many seconds. */
export const okWithHint = (seconds: number): string =>
  `HTTP/1.1 200 OK\r\nkeep-alive: timeout=${seconds}${OK.slice(15)}`

/** A request as it came over the wire; `connection` counts those accepted, from 1. */
type Received = { head: string; body: Buffer; connection: number }

/** What the receiver does once a whole request is there. */
export type Behaviour = (socket: Socket, request: Received) => void

export type Receiver = {
  port: number
  received: Received[]
  /** Connections accepted so far, used or not. */
  connections: () => number
  /** Connections that are open now. */
  open: () => number
  stop: () => Promise<void>
}

/**
 * Starts a receiver on a free loopback port that speaks raw HTTP, over TLS when a certificate is given.
 * It acts as `behave` returns for each request; an `eager` one before it has read the body, of which it reads no more.
 */
export async function startReceiver(
  behave: Behaviour,
  secure?: tls.TlsOptions,
  { eager = false } = {},
): Promise<Receiver> {
  const received: Received[] = []
  const sockets = new Set<Socket>()
  let connections = 0
  let served = 0
  const serve = (socket: Socket): void => {
    served += 1
    const connection = served
    readRequests(socket, eager, (head, body) => {
      received.push({ head, body, connection })
      behave(socket, { head, body, connection })
    })
  }
  const server = secure === undefined ? net.createServer(serve) : tls.createServer(secure, serve)
  server.on('connection', (socket: Socket) => {
    connections += 1
    sockets.add(socket.on('error', () => undefined))
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stop = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await once(server, 'close')
  }
  const { port } = server.address() as AddressInfo
  return { port, received, connections: () => connections, open: () => sockets.size, stop }
}

function readRequests(socket: Socket, eager: boolean, onRequest: (head: string, body: Buffer) => void): void {
  let bytes = Buffer.alloc(0)
  socket.on('error', () => undefined)
  socket.on('data', (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk])
    const end = bytes.indexOf('\r\n\r\n')
    if (end < 0) return
    const head = bytes.subarray(0, end).toString('latin1')
    const next = end + 4 + Number(/content-length: (\d+)/.exec(head)?.[1] ?? 0)
    if (bytes.length < next && !eager) return
    if (bytes.length < next) readNoMore(socket)
    const body = bytes.subarray(end + 4, next)
    bytes = bytes.subarray(next)
    onRequest(head, body)
  })
}

/** For as long as it may take the client to notice the answer; later its end is wanted. */
function readNoMore(socket: Socket): void {
  socket.removeAllListeners('data').pause()
  setTimeout(() => socket.resume(), 100)
}

/** Sends `bytes`, then closes as a server that is done. */
export function answer(bytes: string | Buffer): Behaviour {
  return (socket) => void socket.end(bytes)
}

/** Sends `bytes` and keeps the connection open. */
export function answerAndHang(bytes: string | Buffer): Behaviour {
  return (socket) => void socket.write(bytes)
}

/** Sends `first`, then `again` every 20 ms until the client has gone. */
export function drip(first: string, again: string): Behaviour {
  return (socket) => {
    socket.write(first)
    const timer = setInterval(() => socket.write(again), 20)
    socket.on('close', () => clearInterval(timer))
  }
}

/**
 * Answers the first request of each connection as it should be, so that the next one comes on the same connection, on a
 * busy machine too.
 */
export function onSecondRequest(behave: Behaviour): Behaviour {
  const greeted = new WeakSet<Socket>()
  return (socket, request) => {
    if (greeted.has(socket)) return behave(socket, request)
    greeted.add(socket)
    socket.write(okWithHint(60))
  }
}

/** Sends `bytes` again and again, as fast as the client takes them. */
export function flood(first: string, again: string): Behaviour {
  return (socket) => {
    const chunk = again.repeat(Math.ceil(65_536 / again.length))
    const pour = (): void => {
      while (!socket.destroyed && socket.write(chunk));
    }
    socket.on('drain', pour).write(first)
    pour()
  }
}

/** Sends `bytes`, lets them arrive, and resets the connection. */
export function answerAndReset(bytes: string): Behaviour {
  return (socket) => {
    if (bytes !== '') socket.write(bytes)
    setTimeout(() => socket.resetAndDestroy(), bytes === '' ? 0 : 50)
  }
}

/** For tests in which one POST follows the other at once. */
export const NO_REST = { restMs: 0, restRoundTrips: 0 }

/** A client that may reach loopback over http, with short bounds. */
export function createTestClient(options: Partial<HttpClientOptions> = {}): HttpClient {
  return createHttpClient({
    allowHttp: true,
    allowedCidrs: ['127.0.0.0/8'],
    timeoutMs: 10_000,
    connectTimeoutMs: 5_000,
    ...options,
  })
}

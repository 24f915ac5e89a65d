import { once } from 'node:events'
import * as net from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import * as tls from 'node:tls'
import { generate } from 'selfsigned'
import { createHttpClient } from '../../../src/outbound/http-client.ts'
import type { HttpClient, HttpClientOptions } from '../../../src/outbound/http-client.ts'

/** A request as it came over the wire. */
type Received = { head: string; body: Buffer }

/** What the receiver does once a whole request is there. */
export type Behaviour = (socket: Socket) => void

export type Receiver = {
  port: number
  received: Received[]
  /** Connections accepted so far, used or not. */
  connections: () => number
  stop: () => Promise<void>
}

export type Certificate = { key: string; cert: string }

/** A certificate that signs itself; trusted when given as `ca`. */
export async function createCertificate(
  options: { name?: string; notBefore?: Date; notAfter?: Date } = {},
): Promise<Certificate> {
  const name = options.name ?? 'localhost'
  const pems = await generate([{ name: 'commonName', value: name }], {
    keyType: 'ec',
    algorithm: 'sha256',
    ...(options.notBefore === undefined ? {} : { notBeforeDate: options.notBefore }),
    ...(options.notAfter === undefined ? {} : { notAfterDate: options.notAfter }),
    extensions: [
      { name: 'basicConstraints', cA: true },
      { name: 'subjectAltName', altNames: [{ type: 2, value: name }] },
    ],
  })
  return { key: pems.private, cert: pems.cert }
}

/** Starts a receiver on a free loopback port that speaks raw HTTP, over TLS when a certificate is given. */
export async function startReceiver(behave: Behaviour, secure?: tls.TlsOptions): Promise<Receiver> {
  const received: Received[] = []
  const sockets = new Set<Socket>()
  let connections = 0
  const serve = (socket: Socket): void =>
    readRequest(socket, (request) => {
      received.push(request)
      behave(socket)
    })
  const server = secure === undefined ? net.createServer(serve) : tls.createServer(secure, serve)
  server.on('connection', (socket: Socket) => {
    connections += 1
    sockets.add(socket.on('error', () => undefined))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stop = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await once(server, 'close')
  }
  return { port: (server.address() as AddressInfo).port, received, connections: () => connections, stop }
}

function readRequest(socket: Socket, onRequest: (request: Received) => void): void {
  let bytes = Buffer.alloc(0)
  socket.on('error', () => undefined)
  socket.on('data', (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk])
    const end = bytes.indexOf('\r\n\r\n')
    if (end < 0) return
    const head = bytes.subarray(0, end).toString('latin1')
    const length = Number(/content-length: (\d+)/.exec(head)?.[1] ?? 0)
    const body = bytes.subarray(end + 4)
    if (body.length >= length) onRequest({ head, body })
  })
}

/** Sends `bytes`, then closes as a server that is done. */
export function answer(bytes: string | Buffer): Behaviour {
  return (socket) => void socket.end(bytes)
}

/** Sends `bytes` and holds the connection open. */
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

/** Sends `bytes`, lets them arrive, and resets the connection. */
export function answerAndReset(bytes: string): Behaviour {
  return (socket) => {
    if (bytes !== '') socket.write(bytes)
    setTimeout(() => socket.resetAndDestroy(), bytes === '' ? 0 : 50)
  }
}

/** A client that may reach loopback over http, with short bounds. */
export function createTestClient(options: Partial<HttpClientOptions> = {}): HttpClient {
  return createHttpClient({
    allowHttp: true,
    allowedCidrs: ['127.0.0.0/8'],
    timeoutMs: 2000,
    connectTimeoutMs: 1000,
    maxResponseBytes: 32_768,
    userAgent: 'Posthorn/test',
    ...options,
  })
}

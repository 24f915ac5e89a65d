import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import * as net from 'node:net'
import { createServer as createTlsServer } from 'node:https'
import { PLAIN_PORTS, PUBLIC_ADDRESSES, TLS_PORTS } from './rig-targets.ts'

/** A connection that was accepted, at which of this machine's addresses, and how many bytes came over it. */
type Hit = { address: string; port: number; bytes: number }

/** Every connection that anything made to the listeners, from the first byte of the TCP handshake on. */
export type Ledger = { hits(): Hit[]; breaches(): Hit[]; forget(): void }

/** Listens at every address of the rig, with a certificate that would do for a private address too. */
export async function startListeners(certificate: { key: string; cert: string }): Promise<Ledger> {
  const sockets: { socket: net.Socket; address: string; port: number }[] = []
  const note = (socket: net.Socket): void => {
    const address = (socket.localAddress ?? '').replace(/^::ffff:(?=\d+\.)/, '')
    sockets.push({ socket: socket.on('error', () => undefined), address, port: socket.localPort ?? 0 })
  }
  for (const port of [...TLS_PORTS, ...PLAIN_PORTS]) {
    const isSecure = TLS_PORTS.includes(port)
    const server = isSecure ? createTlsServer(certificate, confirm) : createHttpServer(confirm)
    server.on('connection', note)
    server.listen(port, '::')
    await once(server, 'listening')
  }

  const hits = (): Hit[] =>
    sockets.map(({ socket, address, port }) => ({ address, port, bytes: socket.bytesRead }))
  return {
    hits,
    breaches: () => hits().filter(({ address }) => !PUBLIC_ADDRESSES.includes(address)),
    forget: () => void sockets.splice(0),
  }
}

function confirm(request: IncomingMessage, response: ServerResponse): void {
  request.resume()
  request.on('end', () => {
    if (request.url === '/redirect') response.writeHead(307, { location: 'http://169.254.169.254/' })
    response.end('ok')
  })
}

/** Whether a plain socket, without a guard, gets through to that host. */
export async function isReachable(host: string, port: number): Promise<boolean> {
  const socket = net.connect({ host, port, timeout: 1000 })
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** A TCP proxy on 127.0.0.1 in front of one server, which can fall silent, cut connections and delay what passes. */
export type TcpProxy = {
  port: number
  /** Connections that are open now. */
  connections(): number
  /**
   * Passes nothing on any more, in either direction, and closes nothing: as a lost route does. `open`: the connections
   * of this instant, new ones work; `all`: new ones are accepted and silent too.
   */
  fallSilent(which: 'open' | 'all'): void
  /** Passes on what it has buffered, and all later data. */
  speak(): void
  /** Resets every open connection. */
  cut(): void
  /** Refuses new connections, and resets those that are open, until `speak`. */
  refuse(): void
  /** Delays each chunk by that many milliseconds from now on; 0 for no delay. */
  delayBy(ms: number): void
  close(): Promise<void>
}

type Link = { client: Socket; upstream: Socket; isSilent: boolean }

/** Listens on a free port and passes connections on to `target`, such as `127.0.0.1:5432`. */
export async function createTcpProxy(target: { host: string; port: number }): Promise<TcpProxy> {
  const links = new Set<Link>()
  // All open sockets. A silent link leaves `links` when one of its two sockets closes; the other one stays open.
  const sockets = new Set<Socket>()
  let isSilent = false
  let isRefusing = false
  let delayMs = 0

  const server = createServer((client) => {
    if (isRefusing) {
      client.on('error', () => undefined)
      client.resetAndDestroy()
      return
    }
    const link: Link = { client, upstream: connect(target.port, target.host), isSilent }
    links.add(link)
    pass(link, client, link.upstream)
    pass(link, link.upstream, client)
  })

  function pass(link: Link, from: Socket, to: Socket): void {
    sockets.add(from)
    from.setNoDelay(true)
    from.on('error', () => undefined)
    if (link.isSilent) from.pause()
    from.on('data', (chunk) => {
      const write = (): void => {
        if (!to.destroyed) to.write(chunk)
      }
      if (delayMs === 0) write()
      else setTimeout(write, delayMs)
    })
    from.on('close', () => {
      sockets.delete(from)
      links.delete(link)
      // A peer that lost its route hears of no close.
      if (!link.isSilent) to.destroy()
    })
    from.on('end', () => {
      if (!link.isSilent) to.end()
    })
  }

  function each(act: (socket: Socket, link: Link) => void): void {
    for (const link of [...links]) for (const socket of [link.client, link.upstream]) act(socket, link)
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => links.size,
    fallSilent(which) {
      isSilent = which === 'all'
      each((socket, link) => {
        link.isSilent = true
        socket.pause()
      })
    },
    speak() {
      isSilent = false
      isRefusing = false
      each((socket, link) => {
        link.isSilent = false
        socket.resume()
      })
    },
    cut: () => each((socket) => socket.resetAndDestroy()),
    refuse() {
      isRefusing = true
      each((socket) => socket.resetAndDestroy())
    },
    delayBy(ms) {
      delayMs = ms
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** A proxy in front of PostgreSQL, and the address of the same database behind it. */
export async function createDatabaseProxy(databaseUrl: string): Promise<TcpProxy & { url: string }> {
  const url = new URL(databaseUrl)
  const proxy = await createTcpProxy({ host: url.hostname, port: Number(url.port) })
  url.hostname = '127.0.0.1'
  url.port = String(proxy.port)
  return { ...proxy, url: url.href }
}

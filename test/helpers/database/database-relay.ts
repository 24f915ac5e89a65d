import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** A connection to PostgreSQL that can be cut and restored; `url` leads through it. */
export type DatabaseRelay = { url: string; cut(): Promise<void>; restore(): Promise<void> }

/** A relay to the server of `target`: `cut` refuses and breaks connections as a server that died does. */
export async function createDatabaseRelay(target: string): Promise<DatabaseRelay> {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  const relay = createServer((near) => {
    const far = connect(Number(port), hostname)
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        sockets.delete(socket)
        near.destroy()
        far.destroy()
      })
    }
    near.pipe(far).pipe(near)
  })
  await once(relay.listen(0, '127.0.0.1'), 'listening')
  const own = (relay.address() as AddressInfo).port
  return {
    url: Object.assign(new URL(target), { hostname: '127.0.0.1', port: String(own) }).href,
    async cut() {
      const closed = relay.listening ? once(relay.close(), 'close') : null
      for (const socket of sockets) socket.destroy()
      await closed
    },
    async restore() {
      await once(relay.listen(own, '127.0.0.1'), 'listening')
    },
  }
}

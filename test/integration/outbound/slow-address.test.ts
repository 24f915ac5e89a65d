import { spawn } from 'node:child_process'
import { once } from 'node:events'
import * as net from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { createAddressGuard } from '../../../src/outbound/address-guard.ts'
import { createConnector } from '../../../src/outbound/pinned-connector.ts'
import { eventually } from '../../helpers/eventually.ts'

/** Listens with room for one connection, and accepts none until it is written to: the system drops further SYNs. */
const LISTENER = `
  const server = require('node:net').createServer((socket) => socket.on('error', () => {}))
  server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
    console.log(server.address().port)
    setImmediate(() => require('node:fs').readSync(0, Buffer.alloc(1)))
  })`

describe('an endpoint with several addresses', () => {
  it('is reached at one that answers only when its SYN is sent again, where the network has no route to the other', async () => {
    const listener = spawn(process.execPath, ['-e', LISTENER], { stdio: ['pipe', 'pipe', 'inherit'] })
    const sockets: net.Socket[] = []
    try {
      const [line] = (await once(listener.stdout, 'data')) as [Buffer]
      const port = Number(line.toString())
      const open = (): net.Socket => {
        const socket = net.connect(port, '127.0.0.1').on('error', () => undefined)
        sockets.push(socket)
        return socket
      }
      await eventually(async () => {
        const socket = open()
        // After a pause of this process what has arrived is read before the second timer.
        const isSilent = delay(200).then(() => delay(50, false))
        const isOpen = await Promise.race([once(socket, 'connect').then(() => true), isSilent])
        expect(isOpen).to.equal(false)
      })
      const connect = createConnector({
        allowHttp: true,
        guard: createAddressGuard({ allowedCidrs: ['127.0.0.0/8'] }),
        resolver: {
          resolve: () =>
            Promise.resolve([
              { address: '127.0.0.1', family: 4 },
              { address: '127.255.255.255', family: 4 },
            ]),
        },
        connectTimeoutMs: 5_000,
      })
      const connecting = connect({ protocol: 'http:', hostname: 'receiver.example', port: String(port) })
      // Later than Node.js would turn to the next address by itself.
      await delay(300)
      listener.stdin.write('x')
      const { socket, roundTripMs } = await connecting
      sockets.push(socket)
      expect(socket.remoteAddress).to.equal('127.0.0.1')
      expect(roundTripMs).to.be.above(400)
    } finally {
      for (const socket of sockets) socket.destroy()
      listener.kill('SIGKILL')
    }
  })
})

import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { expect } from 'chai'
import { createTcpProxy } from '../../faults/rig/tcp-proxy.ts'
import { eventually } from '../../helpers/eventually.ts'

describe('the TCP proxy of the fault suite', () => {
  it('closes even when one side of a silent connection is already closed', async () => {
    const accepted: Socket[] = []
    const target = createServer((socket) => accepted.push(socket.on('error', () => undefined)))
    target.listen(0, '127.0.0.1')
    await once(target, 'listening')
    const proxy = await createTcpProxy({ host: '127.0.0.1', port: (target.address() as AddressInfo).port })
    const client = connect(proxy.port, '127.0.0.1').on('error', () => undefined)
    await eventually(() => expect(accepted).to.have.length(1))
    proxy.fallSilent('open')
    accepted[0]!.resetAndDestroy()
    await eventually(() => expect(proxy.connections()).to.equal(0))
    await proxy.close()
    client.destroy()
    target.close()
  })
})

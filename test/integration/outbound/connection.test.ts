import { once } from 'node:events'
import * as net from 'node:net'
import { expect } from 'chai'
import {
  openConnection,
  type Connection,
  createConnectionPool,
} from '../../../src/outbound/connection-pool.ts'
import { OutboundError } from '../../../src/outbound/failure-code.ts'
import { answerAndHang, NO_REST, OK, startReceiver, type Receiver } from './receivers.ts'

const REQUEST = { path: '/', headers: {}, body: Buffer.from('{}') }

describe('a connection', () => {
  let receiver: Receiver
  let connection: Connection

  beforeEach(async () => {
    receiver = await startReceiver(answerAndHang(OK))
    const socket = net.connect(receiver.port, '127.0.0.1')
    await once(socket, 'connect')
    connection = openConnection(`http://127.0.0.1:${receiver.port}`, { socket, roundTripMs: 0 }, true)
  })

  afterEach(async () => {
    connection.destroy()
    await receiver.stop()
  })

  async function post(): Promise<void> {
    await connection.post(REQUEST, { head: () => undefined, chunk: () => true })
  }

  it('opens no other socket when its own is closed', async () => {
    await post()
    connection.socket.destroy()
    const error = await post().catch((thrown: unknown) => thrown)
    expect(error).to.be.instanceOf(OutboundError).and.to.include({ code: 'connection_reset' })
    expect([receiver.connections(), receiver.received.length]).to.deep.equal([1, 1])
  })

  it('rejects when its socket is closed before the first POST', async () => {
    connection.socket.destroy()
    const error = await post().catch((thrown: unknown) => thrown)
    expect(error).to.be.instanceOf(Error)
    expect([receiver.connections(), receiver.received.length]).to.deep.equal([1, 0])
  })

  it('is reused by one of many concurrent callers', async () => {
    const pool = createConnectionPool(NO_REST)
    await post()
    pool.add('key', connection)
    const taken = await Promise.all(Array.from({ length: 10 }, () => pool.take('key')))
    expect(taken.filter((one) => one !== null)).to.deep.equal([connection])
  })
})

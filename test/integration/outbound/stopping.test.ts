import { expect } from 'chai'
import { createShutdown, StoppingError } from '../../../src/shutdown.ts'
import { eventually } from '../../helpers/eventually.ts'
import { createTestClient, OK, startReceiver, type Receiver } from './receivers.ts'

describe('HttpClient.post while the process stops', () => {
  let receiver: Receiver | null = null

  afterEach(async () => {
    await receiver?.stop()
  })

  it('starts no POST once the process stops', async () => {
    receiver = await startReceiver((socket) => void socket.end(OK))
    const shutdown = createShutdown(5_000)
    const client = createTestClient({ stopping: shutdown.stopping })
    shutdown.begin()
    const error = await client
      .post({ url: `http://127.0.0.1:${receiver.port}/`, headers: {}, body: Buffer.from('{}') })
      .catch((thrown: unknown) => thrown)
    expect(error).to.be.instanceOf(StoppingError)
    expect(receiver.connections()).to.equal(0)
  })

  it('aborts a POST at once whose connection is not established yet', async () => {
    // It accepts and never answers the TLS handshake.
    receiver = await startReceiver(() => undefined)
    const shutdown = createShutdown(5_000)
    const client = createTestClient({ stopping: shutdown.stopping })
    const posting = client
      .post({ url: `https://127.0.0.1:${receiver.port}/`, headers: {}, body: Buffer.from('{}') })
      .catch((thrown: unknown) => thrown)
    await eventually(() => expect(receiver?.connections()).to.equal(1))
    shutdown.begin()
    expect(await posting).to.be.instanceOf(StoppingError)
    await client.close()
  })

  it('lets a started POST finish', async () => {
    let answer: () => void = () => undefined
    receiver = await startReceiver((socket) => {
      answer = () => void socket.end(OK)
    })
    const shutdown = createShutdown(5_000)
    const client = createTestClient({ stopping: shutdown.stopping })
    const posting = client.post({
      url: `http://127.0.0.1:${receiver.port}/`,
      headers: {},
      body: Buffer.from('{}'),
    })
    await eventually(() => expect(receiver?.received).to.have.length(1))
    shutdown.begin()
    answer()
    expect(await posting).to.include({ succeeded: true, statusCode: 200 })
  })
})

import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { eventually } from '../../helpers/eventually.ts'
import { createCertificate } from '../../helpers/receivers/receiver.ts'
import { post as postSigned } from '../../../src/deliveries/attempt/send-signed.ts'
import type { HttpClient, PostResult } from '../../../src/outbound/http-client.ts'
import { answer, answerAndHang, createTestClient } from './receivers.ts'
import {
  NO_REST,
  OK,
  okWithHint,
  onSecondRequest,
  startReceiver,
  type Behaviour,
  type Receiver,
} from './receivers.ts'

const BODY = Buffer.from('{}')
const OOPS = 'HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n'

/** Closing is compared with timers that are set when the connection falls idle. */
const TIMERS_MS = [3_500, 4_000]

describe('a reused connection', () => {
  const receivers: Receiver[] = []
  let client: HttpClient

  beforeEach(() => {
    client = createTestClient({ poolLimits: NO_REST })
  })

  afterEach(async () => {
    await client.close()
    await eventually(() => expect(receivers.map(({ open }) => open())).to.deep.equal(receivers.map(() => 0)))
    await Promise.all(receivers.splice(0).map((receiver) => receiver.stop()))
  })

  async function receive(behave: Behaviour, secure?: { key: string; cert: string }): Promise<Receiver> {
    const receiver = await startReceiver(behave, secure)
    receivers.push(receiver)
    return receiver
  }

  function post(
    { port }: Receiver,
    reuseKey: string | null = 'webhook',
    scheme = 'http',
  ): Promise<PostResult> {
    const url = `${scheme}://localhost:${port}/in`
    return client.post({ url, headers: {}, body: BODY, ...(reuseKey === null ? {} : { reuseKey }) })
  }

  async function postTimes(times: number, receiver: Receiver, reuseKey?: string | null): Promise<void> {
    for (let count = 0; count < times; count += 1) await post(receiver, reuseKey)
  }

  describe('is used', () => {
    it('by POSTs of one webhook that follow each other, which ask for it', async () => {
      const warnings: Error[] = []
      const onWarning = (warning: Error): void => void warnings.push(warning)
      process.on('warning', onWarning)
      const receiver = await receive(answerAndHang(OK))
      await postTimes(30, receiver)
      process.off('warning', onWarning)
      expect([receiver.connections(), receiver.received.length]).to.deep.equal([1, 30])
      // Node warns of listeners that become more and more.
      expect(warnings).to.deep.equal([])
      for (const { head } of receiver.received) expect(head).to.include('\r\nconnection: keep-alive\r\n')
    })

    it('over TLS as well', async () => {
      const certificate = await createCertificate()
      const receiver = await receive(answerAndHang(OK), certificate)
      client = createTestClient({ poolLimits: NO_REST, ca: certificate.cert })
      for (let count = 0; count < 5; count += 1) await post(receiver, 'webhook', 'https')
      expect(receiver.connections()).to.equal(1)
    })

    it('whatever the status of the answers', async () => {
      const receiver = await receive(answerAndHang(OOPS))
      await postTimes(3, receiver)
      expect(receiver.connections()).to.equal(1)
    })

    it('by the deliveries of a webhook, and not by those of another', async () => {
      const receiver = await receive(answerAndHang(OK))
      const claim = {
        owner: 'run',
        claimedAtMs: 0,
        isRequested: false,
        runs: 1,
        ageMs: 0,
        traceId: 't',
        secret: null,
        body: BODY,
      } as const
      const url = `http://localhost:${receiver.port}/`
      for (const webhookId of ['a', 'a', 'b', 'a']) {
        const held = { ...claim, url, webhookId, eventKey: 'invoice:paid' }
        const request = { organisationId: 'org', deliveryId: 'd', number: 1 }
        await postSigned(client, request, held, {}, new AbortController().signal)
      }
      expect(receiver.received.map(({ connection }) => connection)).to.deep.equal([1, 1, 2, 1])
    })

    it('never by two webhooks, though they have the same URL', async () => {
      const receiver = await receive(answerAndHang(OK))
      for (const webhook of ['a', 'b', 'a', 'b', 'c']) await post(receiver, webhook)
      expect(receiver.received.map(({ connection }) => connection)).to.deep.equal([1, 2, 1, 2, 3])
    })

    it('never by two origins of one webhook', async () => {
      const first = await receive(answerAndHang(OK))
      const second = await receive(answerAndHang(OK))
      for (const receiver of [first, second, first, second]) await post(receiver)
      await client.post({
        url: `http://127.0.0.1:${first.port}/`,
        headers: {},
        body: BODY,
        reuseKey: 'webhook',
      })
      expect([first.connections(), second.connections()]).to.deep.equal([2, 1])
    })

    it('never with a POST that names no webhook', async () => {
      const receiver = await receive(answerAndHang(OK))
      await post(receiver)
      await postTimes(2, receiver, null)
      expect(receiver.received.map(({ connection }) => connection)).to.deep.equal([1, 2, 3])
      expect(receiver.received[2]?.head).to.include('\r\nconnection: close\r\n')
    })

    it('never by two POSTs at a time', async () => {
      const receiver = await receive((socket) => void setTimeout(() => socket.write(OK), 50))
      await post(receiver)
      await Promise.all([post(receiver), post(receiver), post(receiver)])
      expect(new Set(receiver.received.slice(1).map(({ connection }) => connection)).size).to.equal(3)
    })
  })

  describe('is not reused', () => {
    for (const [title, behave] of [
      [
        'the endpoint says so',
        answerAndHang('HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n'),
      ],
      ['it speaks HTTP/1.0', answerAndHang('HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n')],
      [
        'it will wait for a second only',
        answerAndHang(`HTTP/1.1 200 OK\r\nkeep-alive: timeout=1${OK.slice(15)}`),
      ],
      [
        'its answer is longer than what is kept',
        answerAndHang(`HTTP/1.1 200 OK\r\ncontent-length: 40000\r\n\r\n${'x'.repeat(40_000)}`),
      ],
      ['its answer breaks off', answer('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc')],
      ['it answers twice', answerAndHang(OK + OK)],
      ['more than an answer comes', answerAndHang(`HTTP/1.1 204 No\r\ncontent-length: 3\r\n\r\nabc`)],
    ] as const) {
      it(`when ${title}`, async () => {
        const receiver = await receive(behave)
        await postTimes(3, receiver)
        expect(receiver.received.map(({ connection }) => connection)).to.deep.equal([1, 2, 3])
      })
    }
  })

  describe('that the endpoint closes', () => {
    for (const [title, close] of [
      ['in order', (socket: Socket) => void socket.end()],
      ['by a reset', (socket: Socket) => void socket.resetAndDestroy()],
    ] as const) {
      for (const waitMs of [0, 20]) {
        it(`${title}, ${waitMs} ms before the next POST, is replaced by a new one`, async () => {
          const sockets: Socket[] = []
          const receiver = await receive((socket) => {
            sockets.push(socket)
            socket.write(OK)
          })
          await post(receiver)
          close(sockets[0]!)
          if (waitMs > 0) await delay(waitMs)
          expect(await post(receiver)).to.include({ succeeded: true })
          expect(receiver.received.map(({ connection }) => connection)).to.deep.equal([1, 2])
        })
      }

      it(`${title}, having read the next POST, fails that attempt, and nothing is sent again`, async () => {
        const receiver = await receive(onSecondRequest(close))
        await post(receiver)
        const error = 'The endpoint closed the connection before it had answered.'
        expect(await post(receiver)).to.include({ failureCode: 'connection_reset', error, response: null })
        expect(receiver.received.map(({ connection }) => connection)).to.deep.equal([1, 1])
      })
    }
  })

  describe('is closed', () => {
    async function closingOf(
      act: (receiver: Receiver) => Promise<unknown>,
      behave = answerAndHang(OK),
    ): Promise<{ afterMs: number; isBefore: (timerMs: number) => boolean }> {
      let closedAtMs = 0
      const receiver = await receive((socket, request) => {
        if (request.connection === 1) socket.once('close', () => (closedAtMs = performance.now()))
        behave(socket, request)
      })
      await post(receiver)
      const startedAtMs = performance.now()
      // A timer of this process is as late as the one that closes.
      const ends = new Map<number, number>()
      for (const ms of TIMERS_MS) setTimeout(() => ends.set(ms, performance.now()), ms).unref()
      await act(receiver)
      await eventually(() => expect(closedAtMs).to.be.above(0))
      return {
        afterMs: closedAtMs - startedAtMs,
        isBefore: (ms) => closedAtMs < (ends.get(ms) ?? Infinity),
      }
    }
    const wait = (): Promise<void> => Promise.resolve()

    it('after 1.5 seconds without a POST', async () => {
      const closing = await closingOf(wait)
      expect(closing.afterMs).to.be.above(1_400)
      expect(closing.isBefore(3_500), `after ${closing.afterMs} ms`).to.equal(true)
    })

    it('a second before the endpoint would close it', async () => {
      const closing = await closingOf(wait, answerAndHang(okWithHint(4)))
      expect(closing.afterMs).to.be.above(2_900)
      expect(closing.isBefore(4_000), `after ${closing.afterMs} ms`).to.equal(true)
    })

    it('when it is too old, between two POSTs', async () => {
      client = createTestClient({ poolLimits: { ...NO_REST, maxAgeMs: 2_000 } })
      await closingOf(
        async (receiver) => {
          await postTimes(1, receiver)
          await delay(2_010)
          await post(receiver)
          expect(receiver.received.map(({ connection }) => connection)).to.deep.equal([1, 1, 2])
          // Without its age it would be used for eight seconds.
        },
        answerAndHang(okWithHint(9)),
      )
    })

    it('when a POST of the same webhook has no answer, and not when one of another has none', async () => {
      let isSilent = false
      const behave: Behaviour = (socket) => {
        // The one that lies idle meanwhile does so for longer than a POST has time.
        if (!isSilent) setTimeout(() => socket.write(okWithHint(9)), 30)
      }
      client = createTestClient({ poolLimits: NO_REST, timeoutMs: 2_000 })
      const receiver = await receive(behave)
      await Promise.all([post(receiver), post(receiver), post(receiver, 'other')])
      expect(receiver.open()).to.equal(3)
      isSilent = true
      expect(await post(receiver)).to.include({ failureCode: 'timeout' })
      await eventually(() => expect(receiver.open()).to.equal(1))
      isSilent = false
      await post(receiver, 'other')
      expect(receiver.connections()).to.equal(3)
    })

    it('when its POST is called off', async () => {
      const stop = new AbortController()
      const receiver = await receive(onSecondRequest(() => stop.abort(new Error('enough'))))
      const request = {
        url: `http://localhost:${receiver.port}/`,
        headers: {},
        body: BODY,
        reuseKey: 'webhook',
      }
      await client.post(request)
      const thrown = await client.post({ ...request, signal: stop.signal }).catch(String)
      expect(thrown).to.equal('Error: enough')
      await eventually(() => expect(receiver.open()).to.equal(0))
    })

    it('when the client is closed, at once if it is idle and else after its POST', async () => {
      const receiver = await receive(
        (socket, { connection }) => void setTimeout(() => socket.write(OK), connection === 1 ? 0 : 100),
      )
      await post(receiver, 'idle')
      const posting = post(receiver, 'busy')
      await eventually(() => expect(receiver.received.length).to.equal(2))
      await client.close()
      expect(await posting).to.include({ succeeded: true })
      await eventually(() => expect(receiver.open()).to.equal(0))
    })
  })

  it('leaves room for others: at most so many of a webhook, and of all', async () => {
    client = createTestClient({ poolLimits: { ...NO_REST, maxIdlePerKey: 2, maxIdle: 3 } })
    const receiver = await receive((socket) => void setTimeout(() => socket.write(OK), 50))
    await Promise.all(['a', 'a', 'a', 'a'].map((webhook) => post(receiver, webhook)))
    await eventually(() => expect(receiver.open()).to.equal(2))
    await Promise.all(['b', 'b', 'b', 'b'].map((webhook) => post(receiver, webhook)))
    await eventually(() => expect(receiver.open()).to.equal(3))
    // The one that lay idle longest had to go: of "a" one is left.
    const connections = receiver.connections()
    await Promise.all(['b', 'b'].map((webhook) => post(receiver, webhook)))
    expect(receiver.connections()).to.equal(connections)
    await Promise.all(['a', 'a'].map((webhook) => post(receiver, webhook)))
    expect(receiver.connections()).to.equal(connections + 1)
  })
})

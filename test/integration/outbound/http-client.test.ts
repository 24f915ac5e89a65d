import { randomBytes } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { expect } from 'chai'
import { verify } from '@octokit/webhooks-methods'
import { sign, USER_AGENT } from '../../../src/outbound/signed-headers.ts'
import type { PostResult } from '../../../src/outbound/http-client.ts'
import { answer, answerAndReset, createTestClient, OK, startReceiver } from './receivers.ts'
import type { Behaviour, Receiver } from './receivers.ts'

describe('HttpClient.post', () => {
  const client = createTestClient()
  const receivers: Receiver[] = []

  async function receive(behave: Behaviour): Promise<Receiver> {
    const receiver = await startReceiver(behave)
    receivers.push(receiver)
    return receiver
  }

  async function postTo(behave: Behaviour, using = client): Promise<PostResult> {
    const { port } = await receive(behave)
    return using.post({ url: `http://127.0.0.1:${port}/in`, headers: {}, body: Buffer.from('{}') })
  }

  afterEach(async () => {
    await Promise.all(receivers.splice(0).map((receiver) => receiver.stop()))
  })

  describe('the request', () => {
    it('carries the caller’s headers and four more, nothing else', async () => {
      const receiver = await receive(answer(OK))
      const headers = { 'content-type': 'application/json', 'X-Webhook-Event-ID': 'evt' }
      await client.post({
        url: `http://127.0.0.1:${receiver.port}/in?a=b%20c`,
        headers,
        body: Buffer.from('{}'),
      })
      expect(receiver.received[0]?.head.split('\r\n')).to.have.members([
        'POST /in?a=b%20c HTTP/1.1',
        `host: 127.0.0.1:${receiver.port}`,
        'connection: close',
        'content-length: 2',
        `user-agent: ${USER_AGENT}`,
        'content-type: application/json',
        'X-Webhook-Event-ID: evt',
      ])
    })

    it('carries exactly the bytes it was given, which are those that were signed', async () => {
      const secret = randomBytes(32).toString('hex')
      for (const body of [
        Buffer.alloc(0),
        randomBytes(1),
        randomBytes(256 * 1024),
        Buffer.from('{"é":"😀"}'),
      ]) {
        const receiver = await receive(answer(OK))
        const headers = { signature: sign(secret, body) }
        const { succeeded } = await client.post({ url: `http://127.0.0.1:${receiver.port}/`, headers, body })
        expect(succeeded).to.equal(true)
        expect(receiver.received[0]?.body.equals(body)).to.equal(true)
      }
      const receiver = await receive(answer(OK))
      const body = Buffer.from('{"id":"evt_1","name":"é✓😀"}')
      await client.post({
        url: `http://127.0.0.1:${receiver.port}/`,
        headers: { s: sign(secret, body) },
        body,
      })
      const { head, body: bytes } = receiver.received[0]!
      expect(await verify(secret, bytes.toString(), /^s: (.*)$/m.exec(head)![1]!)).to.equal(true)
    })

    it('goes directly to the endpoint, whatever proxy the environment names', async () => {
      const names = ['http', 'https', 'all'].flatMap((kind) => [
        `${kind}_proxy`,
        `${kind}_proxy`.toUpperCase(),
      ])
      const before = { ...process.env }
      for (const name of names) process.env[name] = 'http://127.0.0.1:1'
      // What makes newer Node versions heed the others.
      process.env['NODE_USE_ENV_PROXY'] = '1'
      const result = await postTo(answer(OK), createTestClient())
      process.env = before
      expect(result.succeeded).to.equal(true)
    })
  })

  describe('the outcome by status', () => {
    for (const status of [200, 204, 299]) {
      it(`is a success for ${status}`, async () => {
        const result = await postTo(answer(`HTTP/1.1 ${status} Whatever\r\ncontent-length: 0\r\n\r\n`))
        expect(result).to.include({ succeeded: true, failureCode: null, statusCode: status, error: null })
      })
    }

    for (const [status, error] of [
      [300, 'The endpoint answered 300 Multiple Choices. Redirects are not followed.'],
      [304, 'The endpoint answered 304 Not Modified.'],
      [503, 'The endpoint answered 503 Service Unavailable.'],
      [599, 'The endpoint answered 599.'],
    ] as const) {
      it(`is a failure for ${status}`, async () => {
        const result = await postTo(answer(`HTTP/1.1 ${status} It's fine\r\ncontent-length: 2\r\n\r\nno`))
        expect(result).to.include({ succeeded: false, failureCode: 'http_status', statusCode: status, error })
        expect(result.response?.body).to.equal(status === 304 ? '' : 'no')
      })
    }

    for (const status of [301, 308]) {
      it(`follows no redirect of a ${status}`, async () => {
        const target = await receive(answer(OK))
        const location = `location: http://127.0.0.1:${target.port}/`
        const result = await postTo(
          answer(`HTTP/1.1 ${status} Moved\r\n${location}\r\ncontent-length: 0\r\n\r\n`),
        )
        expect(result).to.include({ succeeded: false, failureCode: 'http_status', statusCode: status })
        expect(target.connections()).to.equal(0)
      })
    }
  })

  describe('the connection', () => {
    it('reports a refused one', async () => {
      const receiver = await startReceiver(answer(OK))
      await receiver.stop()
      const url = `http://127.0.0.1:${receiver.port}/`
      const startedAfter = Date.now()
      const result = await client.post({ url, headers: {}, body: Buffer.from('{}') })
      expect(result).to.include({
        failureCode: 'connect_refused',
        error: 'The connection was refused.',
        statusCode: null,
      })
      expect(result.startedAt.getTime()).to.be.within(startedAfter, Date.now())
    })

    it('reports one that was reset', async () => {
      const error = 'The endpoint closed the connection before it had answered.'
      const result = await postTo(answerAndReset(''))
      expect(result).to.include({ failureCode: 'connection_reset', error, response: null })
    })
  })

  describe('abort by the caller', () => {
    it('rejects with the reason of the signal, before and during a POST', async () => {
      const receiver = await receive(() => stop.abort(reason))
      const reason = new Error('shutting down')
      const stop = new AbortController()
      const request = { url: `http://127.0.0.1:${receiver.port}/`, headers: {}, body: Buffer.from('{}') }
      const thrown: unknown[] = []
      for (let count = 0; count < 2; count += 1) {
        await client.post({ ...request, signal: stop.signal }).catch((error: unknown) => thrown.push(error))
      }
      expect(thrown).to.deep.equal([reason, reason])
      expect(receiver.connections()).to.equal(1)
    })

    it('lets one signal stop any number of POSTs without a warning', async () => {
      const warnings: Error[] = []
      const onWarning = (warning: Error): void => void warnings.push(warning)
      process.on('warning', onWarning)
      const { port } = await receive(answer(OK))
      const { signal } = new AbortController()
      const request = { url: `http://127.0.0.1:${port}/`, headers: {}, body: Buffer.from('{}'), signal }
      const results = await Promise.all(Array.from({ length: 30 }, () => client.post(request)))
      process.off('warning', onWarning)
      expect(results.every((result) => result.succeeded)).to.equal(true)
      expect(warnings).to.deep.equal([])
    })
  })

  it('never rejects for a URL it cannot use', async () => {
    for (const url of ['', 'nonsense', 'ftp://a.eu/', 'file:///etc/passwd']) {
      const result = await client.post({ url, headers: {}, body: Buffer.from('{}') })
      expect(result, url).to.include({ succeeded: false, statusCode: null })
    }
  })

  it('closes only after the POSTs under way have ended', async () => {
    const closing = createTestClient()
    let isClosed = false
    let wasClosedDuring = false
    const posted = await postTo((socket, request) => {
      void closing.close().then(() => (isClosed = true))
      void afterTurns(20).then(() => {
        wasClosedDuring = isClosed
        answer(OK)(socket, request)
      })
    }, closing)
    expect([posted.succeeded, wasClosedDuring]).to.deep.equal([true, false])
    await closing.close()
  })
})

/** Waits for so many turns of the event loop. */
async function afterTurns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await setImmediate()
}

import { once } from 'node:events'
import * as net from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import * as tls from 'node:tls'
import { Worker } from 'node:worker_threads'
import { expect } from 'chai'
import type { FailureCode } from '../../../src/domain/attempt-outcome.ts'
import type { HttpClientOptions, PostResult } from '../../../src/outbound/http-client.ts'
import { blockProcess } from '../../helpers/block-process.ts'
import { createCertificate } from '../../helpers/receivers/receiver.ts'
import {
  answer,
  createTestClient,
  drip,
  OK,
  onSecondRequest,
  startReceiver,
  NO_REST,
  type Behaviour,
} from './receivers.ts'

const DEADLINE_MS = 2_000
/** Later than a timer of the same length; a deadline that began again with a byte, or with each phase, is further off. */
const LATE_MS = 1_500
const BODY = Buffer.from('{}')
const CHUNKED = 'transfer-encoding: chunked\r\n\r\n'

type Timed = PostResult & { timerMs: number }

function expectPunctual(result: Timed): void {
  expect(result.durationMs).to.be.within(DEADLINE_MS - 2, result.timerMs + LATE_MS)
  if (result.failureCode === 'timeout') expect(result.error).to.equal('No answer within 2 seconds.')
}

/** Serves each connection with `serve` while `use` runs; ends what is left of them afterwards. */
async function withServer<T>(
  serve: (socket: net.Socket) => void,
  use: (port: number) => Promise<T>,
  options: net.ServerOpts = {},
): Promise<T> {
  const sockets: net.Socket[] = []
  const server = net.createServer(options, (socket) => {
    sockets.push(socket.on('error', () => undefined))
    serve(socket)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  try {
    return await use((server.address() as net.AddressInfo).port)
  } finally {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
}

describe('the deadline of a POST', () => {
  /** With what a timer as long as the deadline took at the same time. */
  async function timed(posting: Promise<PostResult>): Promise<Timed> {
    const startedAtMs = performance.now()
    const timer = delay(DEADLINE_MS).then(() => performance.now() - startedAtMs)
    return { ...(await posting), timerMs: await timer }
  }
  const post = (url: string, body = BODY, options: Partial<HttpClientOptions> = {}): Promise<Timed> =>
    timed(createTestClient({ timeoutMs: DEADLINE_MS, ...options }).post({ url, headers: {}, body }))

  const drips: [title: string, behave: Behaviour, code: FailureCode | null][] = [
    ['an endpoint that never answers', () => undefined, 'timeout'],
    ['a status line that drips', drip('HTTP/1.1 200 ', 'x'), 'timeout'],
    ['headers that drip', drip('HTTP/1.1 200 OK\r\n', 'x-a: b\r\n'), 'timeout'],
    ['one header that drips', drip('HTTP/1.1 200 OK\r\nx: ', 'y'), 'timeout'],
    ['early hints that drip', drip('', 'HTTP/1.1 103 Early Hints\r\n\r\n'), 'timeout'],
    ['a body that drips after a 500', drip('HTTP/1.1 500 Oops\r\n\r\n', '.'), 'http_status'],
    ['a body that drips after a 200', drip('HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n', '.'), null],
    ['chunks that drip', drip(`HTTP/1.1 200 OK\r\n${CHUNKED}`, '1\r\n.\r\n'), null],
    ['a chunk extension that drips', drip(`HTTP/1.1 404 No\r\n${CHUNKED}3;`, 'x'), 'http_status'],
    ['trailers that drip', drip(`HTTP/1.1 200 OK\r\n${CHUNKED}0\r\n`, 'a: b\r\n'), null],
  ]
  async function postOverNew(behave: Behaviour): Promise<Timed> {
    const receiver = await startReceiver(behave)
    const result = await post(`http://127.0.0.1:${receiver.port}/`)
    await receiver.stop()
    return result
  }

  async function postOverKept(behave: Behaviour): Promise<Timed> {
    const receiver = await startReceiver(onSecondRequest(behave))
    const client = createTestClient({ timeoutMs: DEADLINE_MS, poolLimits: NO_REST })
    const url = `http://127.0.0.1:${receiver.port}/`
    const request = { url, headers: {}, body: BODY, reuseKey: 'webhook' }
    await client.post(request)
    const result = await timed(client.post(request))
    await receiver.stop()
    expect(receiver.connections()).to.equal(1)
    return result
  }

  /** All at once: each lasts until its deadline. */
  const posts = new Map<string, Promise<Timed>[]>()
  before(() => {
    for (const [title, behave] of drips) {
      const both = [postOverNew(behave), postOverKept(behave)]
      for (const post of both) post.catch(() => undefined)
      posts.set(title, both)
    }
  })

  for (const [title, , failureCode] of drips) {
    it(`holds against ${title}, on a new connection and on a kept one`, async () => {
      for (const result of await Promise.all(posts.get(title)!)) {
        expect(result).to.include({ succeeded: failureCode === null, failureCode })
        expectPunctual(result)
        if (title.startsWith('a body')) expect(result.response?.body).to.match(/^\.+$/)
      }
    })
  }

  const large = Buffer.alloc(2e7)

  it('holds against an endpoint that reads nothing of a large body', async () => {
    const options = { pauseOnConnect: true }
    const result = await withServer(
      () => undefined,
      (port) => post(`http://127.0.0.1:${port}/`, large),
      options,
    )
    expect(result.failureCode).to.equal('timeout')
    expectPunctual(result)
  })

  it('holds against an endpoint that reads a large body in drips', async () => {
    const sip = (socket: net.Socket): void => {
      const timer = setInterval(() => void socket.read(1000), 20)
      socket.on('close', () => clearInterval(timer)).on('readable', () => undefined)
    }
    const result = await withServer(sip, (port) => post(`http://127.0.0.1:${port}/`, large))
    expect(result.failureCode).to.equal('timeout')
    expectPunctual(result)
  })

  for (const lateMs of [20, 200])
    it(`counts an answer that came in time, also where this process could not read it until ${lateMs} ms after the deadline`, async () => {
      const receiver = new Worker(
        `const { createServer } = require('node:http')
       const server = createServer((_, response) => setTimeout(() => response.end(), 300))
       server.listen(0, '127.0.0.1', () => require('node:worker_threads').parentPort.postMessage(server.address().port))`,
        { eval: true },
      )
      try {
        const [port] = (await once(receiver, 'message')) as [number]
        const client = createTestClient({ timeoutMs: 1_000 })
        const blockedUntilMs = performance.now() + 1_000 + lateMs
        const posting = client.post({ url: `http://127.0.0.1:${port}/`, headers: {}, body: BODY })
        await delay(150)
        await blockProcess(blockedUntilMs - performance.now())
        const { succeeded, error } = await posting
        expect(succeeded, error ?? '').to.equal(true)
      } finally {
        await receiver.terminate()
      }
    })

  it('does not blame an endpoint whose connection was open, unseen, when its try ended in a pause', async () => {
    const receiver = await startReceiver(answer(OK))
    const client = createTestClient({ allowedCidrs: ['127.0.0.0/8', '::1/128'] })
    // Longer than the try of one of several addresses; nothing listens on the other one.
    const blockAfter = (ticks: number): void => {
      if (ticks > 0) process.nextTick(blockAfter, ticks - 1)
      else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_700)
    }
    const onPhase = (phase: string): void => {
      if (phase === 'dns') blockAfter(10)
    }
    const url = `http://localhost:${receiver.port}/`
    const { succeeded, isInconclusive } = await client.post({ url, headers: {}, body: BODY, onPhase })
    await receiver.stop()
    expect(succeeded || isInconclusive).to.equal(true)
  })

  it('is no outcome where it passes during a pause of this process, without an answer', async () => {
    const receiver = await startReceiver(() => undefined)
    const client = createTestClient({ timeoutMs: 1_000 })
    const posting = client.post({ url: `http://127.0.0.1:${receiver.port}/`, headers: {}, body: BODY })
    await delay(150)
    await blockProcess(2_700)
    expect(await posting).to.include({ failureCode: 'timeout', isInconclusive: true })
    await receiver.stop()
  })

  it('holds against a TLS handshake that drips', async () => {
    const certificate = await createCertificate()
    const secure = tls.createServer(certificate, (socket) => socket.end(OK))
    secure.on('tlsClientError', () => undefined)
    await once(secure.listen(0, '127.0.0.1'), 'listening')
    const { port: securePort } = secure.address() as net.AddressInfo
    let dripped = 0
    const trickle = (client: net.Socket): void => {
      const upstream = net.connect(securePort, '127.0.0.1')
      client.pipe(upstream).on('error', () => undefined)
      const timer = setInterval(() => {
        const drop = upstream.read(1) as Buffer | null
        if (drop !== null && client.write(drop)) dripped += 1
      }, 20)
      client.on('close', () => {
        clearInterval(timer)
        upstream.destroy()
      })
      upstream.on('readable', () => undefined)
    }
    const options = { ca: certificate.cert, connectTimeoutMs: 5000 }
    const result = await withServer(trickle, (port) => post(`https://localhost:${port}/`, BODY, options))
    secure.close()
    expect(dripped).to.be.above(5)
    expect(result.failureCode).to.equal('timeout')
    expectPunctual(result)
  })

  it('leaves an endpoint all of its time', async () => {
    const receiver = await startReceiver((socket) => void setTimeout(() => socket.end(OK), 2_200))
    const result = await post(`http://127.0.0.1:${receiver.port}/`, BODY, { timeoutMs: 5_000 })
    await receiver.stop()
    expect(result).to.include({ succeeded: true, statusCode: 200 })
  })

  it('closes the connection when it passes', async () => {
    const receiver = await startReceiver((socket) => socket.on('close', () => closed()))
    let closed = (): void => undefined
    const closing = new Promise<void>((resolve) => (closed = resolve))
    await post(`http://127.0.0.1:${receiver.port}/`, BODY, { timeoutMs: 1_500 })
    await closing
    await receiver.stop()
  })
})

import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { Worker } from 'node:worker_threads'
import { expect } from 'chai'
import Koa from 'koa'
import {
  createPipeline,
  createUnreadAnswers,
  type HandleRequest,
  type Pipeline,
} from '../../../src/http/limits/pipeline.ts'
import { listen, type Listening, type ListenOptions } from '../../../src/http/listen.ts'
import { blockProcess } from '../../helpers/block-process.ts'
import { eventually } from '../../helpers/eventually.ts'
import { parseAnswer, sendBytes, sendRaw } from '../../helpers/api/raw-request.ts'

const MIB = 1024 * 1024
const LARGE = Buffer.alloc(MIB, 'x')
const HUGE = Buffer.alloc(16 * MIB, 'x')

describe('connections of the API', () => {
  let listening: Listening
  let sockets: Socket[]
  let handled: string[]
  let streams: Readable[]
  let closed: string[]

  beforeEach(() => {
    closed = []
    sockets = []
    handled = []
    streams = []
  })
  afterEach(async () => {
    for (const socket of sockets) socket.destroy()
    await listening.close()
  })

  async function serve(options: Partial<ListenOptions> = {}): Promise<void> {
    const app = new Koa()
    app.silent = true
    app.use((ctx) => {
      handled.push(ctx.url)
      // On the side of the server: a client that does not read sees no end.
      ctx.req.socket.once('close', () => void closed.push(ctx.url)).setMaxListeners(0)
      if (ctx.path === '/stream') {
        const stream = new Readable({ read: () => undefined })
        streams.push(stream)
        ctx.set('content-type', 'text/event-stream')
        ctx.body = stream
        stream.push('first\n')
        return
      }
      const bodies: Record<string, Buffer> = { '/large': LARGE, '/huge': HUGE }
      ctx.body = bodies[ctx.path] ?? `you asked for ${ctx.path}\n`
    })
    listening = await listen(app, { host: '127.0.0.1', port: 0, closeGraceMs: 100, ...options })
  }

  /** Connects, and reads nothing unless requested. */
  async function open(localAddress = '127.0.0.1'): Promise<Socket> {
    const socket = connect({ port: listening.port, host: '127.0.0.1', localAddress }).on(
      'error',
      () => undefined,
    )
    sockets.push(socket)
    await once(socket, 'connect')
    return socket
  }

  function get(path: string, headers = ''): string {
    return `GET ${path} HTTP/1.1\r\nHost: posthorn\r\n${headers}\r\n`
  }

  it('begins a pipelined request when the answer before it has been sent', async () => {
    await serve()
    const socket = await open()
    socket.write(get('/stream') + get('/item').repeat(15))
    await eventually(() => expect(streams).to.have.length(1))
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(handled).to.deep.equal(['/stream'])
    streams[0]?.push(null)
    await eventually(() => expect(handled).to.have.length(16))
  })

  it('answers many pipelined requests in their order', async () => {
    await serve()
    const paths = Array.from({ length: 100 }, (_, index) => `/item/${index}`)
    const last = get('/last', 'Connection: close\r\n')
    const text = await sendBytes(listening.url, paths.map((path) => get(path)).join('') + last)
    const answered = [...text.matchAll(/you asked for (\S+)/g)].map(([, path]) => path)
    expect(answered).to.deep.equal([...paths, '/last'])
  })

  it('answers pipelined requests up to a limit, and announces the close with the last answer', async () => {
    await serve({ pipelineLimits: { maxPipelined: 20 } })
    const text = await sendBytes(listening.url, get('/item').repeat(1_400))
    expect(text.match(/you asked for/g)).to.have.length(20)
    expect(text.match(/Connection: close/gi)).to.have.length(1)
    expect(handled).to.have.length(20)
  })

  it('handles nothing after an answer that announces the close', async () => {
    await serve()
    const text = await sendBytes(listening.url, get('/last', 'Connection: close\r\n') + get('/item'))
    expect(text).to.include('you asked for /last')
    expect(handled).to.deep.equal(['/last'])
  })

  /** Starts a server whose time-outs are short. */
  async function servePipelines(handle: HandleRequest): Promise<Server> {
    const pipelines = new WeakMap<Socket, Pipeline>()
    const limits = { headersTimeout: 500, requestTimeout: 500, connectionsCheckingInterval: 100 }
    const server = createServer(limits, (request, response) =>
      pipelines.get(request.socket)?.handle(request, response),
    )
    server.on('connection', (socket) =>
      pipelines.set(socket, createPipeline(socket, handle, createUnreadAnswers(MIB))),
    )
    server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) =>
      pipelines.get(socket)?.refuseUnreadable(error.code),
    )
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    const close = async (): Promise<void> => {
      await once(server.close(), 'close')
    }
    listening = { url: `http://127.0.0.1:${port}`, port, close }
    return server
  }

  it('sends the answer in progress although the body of the next request cannot be read in time', async () => {
    await servePipelines((request, response) => {
      handled.push(request.url ?? '')
      setTimeout(() => response.end('the slow answer'), 1_500)
    })
    const length = 240 * 1024
    const post = `POST /next HTTP/1.1\r\nHost: posthorn\r\nContent-Length: ${length}\r\n\r\n${'x'.repeat(length)}`
    expect(await sendBytes(listening.url, get('/slow') + post)).to.include('the slow answer')
    expect(handled).to.deep.equal(['/slow'])
  })

  it('refuses a late request of which only the head is there shortly after', async () => {
    const server = await servePipelines((request) => request.resume())
    const socket = await open()
    let text = ''
    socket.on('data', (chunk) => (text += chunk.toString()))
    server.once('clientError', () => socket.write('Content-Length: 9\r\n\r\n'))
    socket.write('POST /late HTTP/1.1\r\nHost: posthorn\r\n')
    await once(socket, 'close')
    expect(text).to.match(/^HTTP\/1\.1 408 /)
  })

  it('handles no more requests of a client that does not read, and disconnects it', async () => {
    await serve({ pipelineLimits: { writeTimeoutMs: 300 } })
    const socket = await open()
    socket.write(get('/large').repeat(1_400))
    await eventually(() => expect(closed).to.not.be.empty)
    // What the buffers of the system take is sent; beyond it nothing is begun.
    expect(handled.length).to.be.within(2, 39)
    expect((await sendRaw(listening.url, { method: 'GET', path: '/next' })).status).to.equal(200)
  })

  it('allows a client to pause between requests and to read slowly', async () => {
    await serve({ pipelineLimits: { writeTimeoutMs: 5_000 } })
    const socket = await open()
    let received = 0
    socket.write(get('/large') + get('/large'))
    await eventually(() => expect(handled).to.have.length(2))
    socket.on('data', (chunk: Buffer) => (received += chunk.length))
    await eventually(() => expect(received).to.be.above(2 * LARGE.length))
    socket.write(get('/item'))
    await eventually(() => expect(handled).to.have.length(3))
  })

  it('disconnects those that leave most unread when all of them take too much', async () => {
    await serve({ maxUnreadBytes: 2.5 * HUGE.length })
    for (const path of ['/large', '/huge?first', '/huge?second', '/huge?third']) {
      const socket = await open()
      socket.write(get(path))
      await eventually(() => expect(handled).to.include(path))
    }
    await eventually(() => expect(closed).to.deep.equal(['/huge?first']))
    const read = await fetch(`${listening.url}/huge?read`)
    expect((await read.arrayBuffer()).byteLength).to.equal(HUGE.length)
    expect(closed).to.not.include('/large')
  })

  it('keeps an idle stream open for longer than an answer may remain unread', async () => {
    await serve({ pipelineLimits: { writeTimeoutMs: 100 } })
    const socket = await open()
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
    socket.write(get('/stream'))
    await eventually(() => expect(text).to.include('first'))
    await new Promise((resolve) => setTimeout(resolve, 300))
    streams[0]?.push('second\n')
    await eventually(() => expect(text).to.include('second'))
  })

  it('answers probes, and refuses everything else, on connections beyond the limit', async () => {
    let refused = 0
    await serve({ maxConnections: 2, onRefused: () => refused++ })
    const first = await open('127.0.0.2')
    await open('127.0.0.3')
    const refusal = await sendRaw(listening.url, { method: 'GET', path: '/item' })
    expect(refusal.status).to.equal(503)
    expect(refusal.headers).to.include({ 'content-type': 'application/problem+json', 'retry-after': '2' })
    expect(JSON.parse(refusal.text)).to.include({ code: 'too_many_connections', status: 503 })
    for (const path of ['/healthz', '/readyz'])
      expect((await sendRaw(listening.url, { method: 'GET', path })).status).to.equal(200)
    expect(refused).to.equal(1)
    first.destroy()
    await eventually(async () =>
      expect((await sendRaw(listening.url, { method: 'GET', path: '/item' })).status).to.equal(200),
    )
  })

  it('closes connections far beyond the limit', async () => {
    await serve({ maxConnections: 1 })
    for (let index = 0; index < 65; index++) await open()
    const beyond = await open()
    beyond.resume()
    await once(beyond, 'close')
  })

  it('leaves half of the connections to others when one sender opens all it can', async () => {
    await serve({ maxConnections: 4 })
    for (let index = 0; index < 80; index++) await open('127.0.0.2')
    const own = await sendRaw(listening.url, { method: 'GET', path: '/item' })
    expect(own.status).to.equal(200)
    await open()
    expect((await sendRaw(listening.url, { method: 'GET', path: '/item' })).status).to.equal(200)
  })

  it('gives a trusted proxy all connections', async () => {
    await serve({ maxConnections: 4, trustedProxies: ['127.0.0.1/32'] })
    for (let index = 0; index < 3; index++) await open()
    expect((await sendRaw(listening.url, { method: 'GET', path: '/item' })).status).to.equal(200)
  })

  it('closes a connection that sends no request within twelve seconds, with an answer to what has begun, and answers what came while the process was paused', async () => {
    await serve()
    const silent = await open()
    const slow = await open()
    slow.write('GET /item HTTP/1.1\r\nHost: posthorn\r\n')
    const late = new Worker(
      `const { parentPort, workerData } = require('node:worker_threads')
       const { connect } = require('node:net')
       const { once } = require('node:events')
       const [socket, blank] = [0, 1].map(() => connect(workerData.port, '127.0.0.1').on('error', () => undefined))
       const connected = [socket, blank].map((one) => once(one, 'connect'))
       Promise.all(connected).then(() => parentPort.postMessage('connected'))
       socket.once('data', (chunk) => {
         parentPort.postMessage(chunk.toString())
         blank.resume().once('close', () => parentPort.postMessage('blank closed'))
       })
       setTimeout(() => [socket.write(workerData.request), blank.write('\\r\\n')], 1000)`,
      { eval: true, workerData: { port: listening.port, request: get('/item') } },
    )
    await once(late, 'message')
    await blockProcess(10_500)
    const [lateAnswer] = (await once(late, 'message')) as [string]
    const blankClosed = once(late, 'message')
    expect(lateAnswer).to.match(/^HTTP\/1\.1 200 /)
    let [toNothing, answer] = ['', '']
    silent.on('data', (chunk) => (toNothing += chunk.toString()))
    slow.on('data', (chunk) => (answer += chunk.toString()))
    await Promise.all([once(silent, 'close'), once(slow, 'close')])
    const { head, body } = parseAnswer(answer)
    expect(head).to.match(/^HTTP\/1\.1 408 /)
    expect(JSON.parse(body)).to.include({ code: 'request_timeout' })
    expect(toNothing).to.equal('')
    expect(await blankClosed).to.deep.equal(['blank closed'])
    await late.terminate()
  })
})

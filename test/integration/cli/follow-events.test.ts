import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { RefusedError, followEvents } from '../../../src/cli/listen/follow-events.ts'
import { eventually } from '../../helpers/eventually.ts'

const ID = (number: number) => `01976f3e-8c1d-7a52-9b40-00000000000${number}`
const frame = (number: number, data = '{}') => `id: ${ID(number)}\nevent: a:b\ndata: ${data}\n\n`

type Handle = (request: IncomingMessage, response: ServerResponse) => void

describe('followEvents', () => {
  let server: Server
  let apiUrl: string
  /** One for each request, in order; the last one for all that follow. */
  let handlers: Handle[]
  let requests: IncomingMessage[]
  let stop: AbortController
  let events: { id: string; key: string; data: string }[]
  let notes: string[]

  beforeEach(async () => {
    requests = []
    events = []
    notes = []
    stop = new AbortController()
    server = createServer((request, response) => {
      requests.push(request)
      handlers[Math.min(requests.length, handlers.length) - 1]!(request, response)
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterEach(async () => {
    stop.abort()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })

  /** Follows until the test ends; resolves to what it threw. */
  function follow(organisationId: string | null = 'org_a'): Promise<unknown> {
    const options = { apiUrl, apiKey: 'the-key', organisationId, events: 'a:b' }
    const listener = {
      onEvent: (event: (typeof events)[number]) => Promise.resolve(void events.push(event)),
      onConnected: () => undefined,
      onNote: (line: string) => void notes.push(line),
    }
    return followEvents(options, listener, stop.signal).catch((error: unknown) => error)
  }
  /** Sends parts, each as a chunk of its own, and then closes the connection where `isOver`. */
  const stream =
    (parts: (string | Buffer)[], isOver = true): Handle =>
    (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
      void (async () => {
        for (const part of ['retry: 1\n\n', ...parts]) {
          response.write(part)
          await new Promise((resolve) => setImmediate(resolve))
        }
        if (isOver) response.destroy()
      })()
    }
  const lastEventIds = () => requests.map(({ headers }) => headers['last-event-id'])

  it('takes each event, and resumes after the last one', async () => {
    handlers = [stream([frame(1), frame(2)]), stream([frame(3)]), stream([], false)]
    void follow()
    await eventually(() => expect(requests).to.have.length(3))
    expect(events.map(({ id }) => id)).to.deep.equal([ID(1), ID(2), ID(3)])
    expect(lastEventIds()).to.deep.equal([undefined, ID(2), ID(3)])
    expect(notes).to.have.length(2)
  })

  it('resumes after a position that came without an event', async () => {
    handlers = [stream([`: heartbeat\nid: ${ID(7)}\nevent: position\ndata: {}\n\n`]), stream([], false)]
    void follow()
    await eventually(() => expect(requests).to.have.length(2))
    expect(lastEventIds()).to.deep.equal([undefined, ID(7)])
    expect(events).to.deep.equal([])
  })

  it('reads events that come in pieces, with every character, and takes nothing inside of them for a field', async () => {
    const data = `{"text":"😀 \u2028id: ${ID(9)}\u2028 é"}`
    const bytes = Buffer.from(frame(1, data) + frame(2))
    handlers = [stream(Array.from(bytes, (byte) => Buffer.from([byte]))), stream([], false)]
    void follow()
    await eventually(() => expect(requests).to.have.length(2))
    expect(events).to.deep.equal([
      { id: ID(1), key: 'a:b', data },
      { id: ID(2), key: 'a:b', data: '{}' },
    ])
    expect(lastEventIds()[1]).to.equal(ID(2))
  })

  it('takes no event that was cut off', async () => {
    handlers = [stream([frame(1), frame(2).slice(0, -1)]), stream([frame(2)], false)]
    void follow()
    await eventually(() => expect(events).to.have.length(2))
    expect(lastEventIds()).to.deep.equal([undefined, ID(1)])
  })

  it('reports a gap, and resumes after what came with it', async () => {
    handlers = [stream([`id: ${ID(5)}\nevent: gap\ndata: {"lastEventId":"${ID(1)}"}\n\n`]), stream([], false)]
    void follow()
    await eventually(() => expect(requests).to.have.length(2))
    expect(notes[0]).to.match(/^Gap: /)
    expect(events).to.deep.equal([])
    expect(lastEventIds()[1]).to.equal(ID(5))
  })

  it('breaks a stream off that sends more than any event', async () => {
    handlers = [stream(Array<string>(5).fill('x'.repeat(1024 * 1024))), stream([frame(1)], false)]
    void follow()
    await eventually(() => expect(events).to.have.length(1))
    expect(notes[0]).to.match(/larger than events of Posthorn/)
  })

  it('tries again when the server is unavailable, and says so in one line', async () => {
    const unavailable: Handle = (_request, response) =>
      response.writeHead(503, { 'content-type': 'text/html' }).end('<h1>\u001b[2J</h1>')
    // The first stream names a short delay.
    handlers = [stream([]), unavailable, unavailable, stream([frame(1)], false)]
    void follow()
    await eventually(() => expect(events).to.have.length(1))
    expect(notes).to.have.length(3)
    for (const line of notes.slice(1))
      expect(line).to.match(/ answers 503, but not as Posthorn does: .* Trying again in 0\.0 s\.$/)
  })

  it('never follows a redirect, which could lead the key to another host', async () => {
    handlers = [(_request, response) => response.writeHead(307, { location: `${apiUrl}/elsewhere` }).end()]
    const error = await follow()
    expect(error).to.be.instanceOf(RefusedError)
    expect((error as Error).message).to.match(/ answers 307, but not as Posthorn does/)
    expect(requests).to.have.length(1)
    expect(requests[0]!.url).to.not.include('the-key')
  })

  it('shows the reasons of a refusal without what could control a terminal', async () => {
    const type = 'urn:posthorn:problem:invalid_fields'
    const problem = {
      type,
      code: 'invalid_fields',
      errors: [{ detail: 'one\u001b[2J' }, { detail: 'two\nlines' }],
    }
    handlers = [
      (_request, response) =>
        response.writeHead(422, { 'content-type': 'application/problem+json' }).end(JSON.stringify(problem)),
    ]
    expect(String(await follow())).to.match(/ answers 422 invalid_fields: one\\u001b\[2J two\\u000alines$/)
  })

  it('survives a refusal without an end', async () => {
    handlers = [
      (_request, response) => {
        response.writeHead(403, { 'content-type': 'application/problem+json' })
        response.write('x'.repeat(1024 * 1024))
      },
    ]
    expect(await follow()).to.be.instanceOf(RefusedError)
  })

  it('finds the organisation of the key, again when that breaks off', async () => {
    const json = { 'content-type': 'application/json' }
    const half: Handle = (_request, response) => {
      response.writeHead(200, json)
      response.write('{"organisation":{"id":')
      setImmediate(() => response.destroy())
    }
    const whole: Handle = (_request, response) =>
      response.writeHead(200, json).end('{"organisation":{"id":"org_b"}}')
    handlers = [half, whole, stream([frame(1)], false)]
    void follow(null)
    await eventually(() => expect(events).to.have.length(1))
    expect(requests.map(({ url }) => url)).to.deep.equal([
      '/api/session',
      '/api/session',
      '/api/orgs/org_b/events/stream?events=a%3Ab',
    ])
    expect(notes).to.have.length(1)
  })

  for (const body of [
    'null',
    '[]',
    '{"organisation":null}',
    '{"organisation":{"id":7}}',
    'x'.repeat(100_000),
  ])
    it(`refuses a session that is none: ${body.slice(0, 30)}`, async () => {
      handlers = [
        (_request, response) => response.writeHead(200, { 'content-type': 'application/json' }).end(body),
      ]
      expect(String(await follow(null))).to.match(/ answers 200, but not as Posthorn does/)
    })
})

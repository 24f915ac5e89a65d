import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { EventSource } from 'eventsource'
import { Registry } from 'prom-client'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { createTestApi, type TestApi } from '../../helpers/api/api.ts'
import { createTestDatabase, type TestDatabase } from '../../helpers/database/database.ts'
import { readDocument } from '../../helpers/documents/documents.ts'
import { eventually } from '../../helpers/eventually.ts'
import { parseExposition } from '../../helpers/metrics/exposition.ts'
import { createMember, publishRow, type TestMember } from '../../helpers/database/factories.ts'

/** What docs/stream/browser.mjs exports. */
type BrowserSample = {
  followEvents: (options: {
    streamUrl: URL
    events: string[]
    getTicket: () => Promise<string>
    onEvent: (key: string, envelope: object, id: string) => void
    onGap: () => void
    pauseMs: number
  }) => () => void
}

const SAMPLES = fileURLToPath(new URL('../../../docs/stream/', import.meta.url))

describe('the sample clients of the stream', () => {
  let database: TestDatabase
  let api: TestApi
  let registry: Registry
  let member: TestMember
  let children: ChildProcess[] = []

  before(async () => {
    database = await createTestDatabase()
    registry = new Registry()
    const metrics = createMetrics(registry)
    api = await createTestApi(database.dataSource, { metrics }, { times: { rightsMs: 100 } })
  })
  after(async () => {
    await api.close()
    await database.drop()
  })
  beforeEach(async () => {
    member = await createMember(database.dataSource)
  })
  afterEach(async () => {
    await Promise.all(children.map(end))
    children = []
  })

  /** Publishes an event and returns its id and envelope. */
  async function publish(eventKey = 'customer:created'): Promise<{ id: string; body: string }> {
    await publishRow(database.dataSource, member.organisationId, { eventKey })
    const [stored] = await database.dataSource.query<{ id: string; body: Buffer }[]>(
      'SELECT id, body FROM event WHERE organisation_id = $1 ORDER BY sequence DESC LIMIT 1',
      [member.organisationId],
    )
    return { id: stored!.id, body: stored!.body.toString() }
  }
  function start(command: string, args: string[], env: Record<string, string>): () => string {
    const child = spawn(command, args, { env: { ...process.env, ...env } })
    children.push(child)
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    return () => text
  }
  const isOpen = () =>
    eventually(async () => {
      const { valueOf } = parseExposition(await registry.metrics())
      expect(valueOf('posthorn_streams_open', {})).to.equal(1)
    })
  const isClosed = () =>
    eventually(async () => {
      const { valueOf } = parseExposition(await registry.metrics())
      expect(valueOf('posthorn_streams_ended_total', { reason: 'rights' })).to.equal(1)
    })

  it('stream.md: curl shows events as they are published', async () => {
    const [, command = ''] =
      /<!-- stream:start -->\s*```sh\n([^]*?)```\s*<!-- stream:end -->/.exec(
        readDocument('docs/stream.md'),
      ) ?? []
    expect(command).to.match(/^curl -N/)
    const first = await publish()
    const output = start('sh', ['-c', `exec ${command.trim()} -H 'last-event-id: ${first.id}'`], {
      API: api.url,
      KEY: member.apiKey,
      ORG: member.organisationId,
    })
    await isOpen()
    const { id, body } = await publish()
    await eventually(() =>
      expect(output()).to.include(`id: ${id}\nevent: customer:created\ndata: ${body}\n\n`),
    )
  })

  it('node.mjs prints each event from a given position on', async () => {
    const first = await publish()
    const env = {
      POSTHORN_URL: api.url,
      POSTHORN_KEY: member.apiKey,
      POSTHORN_ORG: member.organisationId,
      EVENTS: 'customer:created',
      LAST_EVENT_ID: first.id,
    }
    const output = start(process.execPath, [`${SAMPLES}node.mjs`], env)
    await isOpen()
    await publish('invoice:paid')
    const second = await publish()
    await eventually(() => expect(output()).to.equal(`customer:created ${second.id} ${second.body}\n`))
  })

  it('node.mjs prints why it is refused, and ends', async () => {
    const env = { POSTHORN_URL: api.url, POSTHORN_KEY: 'nobody-nobody-nobody', POSTHORN_ORG: 'x' }
    const output = start(process.execPath, [`${SAMPLES}node.mjs`], env)
    const [code] = (await once(children[0]!, 'exit')) as [number]
    expect(code).to.equal(1)
    expect(output()).to.match(/^Refused: .*unauthenticated/)
  })

  it('node.mjs waits for Retry-After, and ends the answer that it does not read', async () => {
    const requestedAt: number[] = []
    let unread = 0
    const server = createServer((request, response) => {
      requestedAt.push(performance.now())
      if (requestedAt.length > 1) return
      unread++
      response.on('close', () => unread--)
      response.writeHead(503, { 'retry-after': '4' }).write('{')
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    start(process.execPath, [`${SAMPLES}node.mjs`], {
      POSTHORN_URL: `http://127.0.0.1:${port}`,
      POSTHORN_KEY: 'k',
    })
    try {
      await eventually(() => expect(requestedAt).to.have.length(2))
      expect(requestedAt[1]! - requestedAt[0]!).to.be.greaterThan(3_900)
      expect(unread).to.equal(0)
    } finally {
      server.close().closeAllConnections()
    }
  })

  it('browser.mjs refuses a filter that it has no listener for', async () => {
    const { followEvents } = (await import(`${SAMPLES}browser.mjs`)) as BrowserSample
    const options = { streamUrl: new URL(api.url), getTicket: () => Promise.resolve(''), pauseMs: 100 }
    const follow = () => followEvents({ ...options, events: ['*'], onEvent: () => {}, onGap: () => {} })
    expect(follow).to.throw('name each event key')
  })

  it('browser.mjs calls its page for each event, and continues after a break with a new ticket', async () => {
    Object.assign(globalThis, { EventSource })
    const { followEvents } = (await import(`${SAMPLES}browser.mjs`)) as BrowserSample
    const path = `/api/orgs/${member.organisationId}/events/stream`
    const seen: string[] = []
    let tickets = 0
    const stop = followEvents({
      streamUrl: new URL(path, api.url),
      events: ['customer:created'],
      getTicket: async () => {
        tickets++
        const { json } = await api.call('POST', `${path}-tickets`, { apiKey: member.apiKey })
        return (json as { ticket: string }).ticket
      },
      onEvent: (_key, envelope, id) => seen.push(`${id} ${JSON.stringify(envelope)}`),
      onGap: () => seen.push('gap'),
      pauseMs: 100,
    })
    await isOpen()
    // A change of rights ends the stream, before its first event.
    await database.dataSource.query('UPDATE member SET full_access = false, permissions = $2 WHERE id = $1', [
      member.memberId,
      ['customer:read'],
    ])
    await isClosed()
    const published = [await publish()]
    await eventually(() => expect(tickets).to.equal(2))
    published.push(await publish())
    await eventually(() => expect(seen).to.deep.equal(published.map(({ id, body }) => `${id} ${body}`)))
    stop()
  })
})

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill()
  await exited
}

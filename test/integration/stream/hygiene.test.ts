import { once } from 'node:events'
import { hashCredential } from '../../../src/credentials.ts'
import { connect, type Socket } from 'node:net'
import { expect } from 'chai'
import { createParser } from 'eventsource-parser'
import { Registry } from 'prom-client'
import type { DataSource } from 'typeorm'
import { upsertMember } from '../../../src/db/queries/organisations.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { createTestApi, type TestApi } from '../../helpers/api/api.ts'
import { createTestDatabase, type TestDatabase } from '../../helpers/database/database.ts'
import { eventually } from '../../helpers/eventually.ts'
import { parseExposition } from '../../helpers/metrics/exposition.ts'
import { createMember, publishRow, type TestMember } from '../../helpers/database/factories.ts'
import { readStream, type StreamOptions, type StreamReader } from '../../helpers/stream/stream-reader.ts'

const TIMES = { beatMs: 100, rightsMs: 100, stallMs: 3_000 }
const PER_ORGANISATION = 3

describe('an open stream', () => {
  let database: TestDatabase
  let api: TestApi
  let member: TestMember
  let registry: Registry
  /** Rows of the pages that streams have read. */
  let pageRows: number
  let readers: StreamReader[] = []

  before(async () => {
    database = await createTestDatabase()
  })
  after(() => database.drop())
  beforeEach(async () => {
    registry = new Registry()
    const limits = { perOrganisation: PER_ORGANISATION, perProcess: 4 }
    const metrics = createMetrics(registry)
    pageRows = 0
    const query = async (text: string, values?: unknown[]): Promise<unknown> => {
      const rows = await database.dataSource.query<unknown[]>(text, values)
      if (text.includes('event_horizon')) pageRows += rows.length
      return rows
    }
    const dataSource = Object.create(database.dataSource, { query: { value: query } }) as DataSource
    api = await createTestApi(dataSource, { metrics }, { limits, times: TIMES })
    member = await createMember(database.dataSource)
  })
  afterEach(async () => {
    await Promise.all(readers.map((reader) => reader.close()))
    readers = []
    await api.close()
  })

  async function open(options: StreamOptions = {}, by: TestMember = member): Promise<StreamReader> {
    const reader = await readStream(api.url, by.organisationId, { apiKey: by.apiKey, ...options })
    readers.push(reader)
    return reader
  }
  const publish = () => publishRow(database.dataSource, member.organisationId)
  const counted = async (name: string, labels: Record<string, string> = {}) =>
    parseExposition(await registry.metrics()).valueOf(`posthorn_${name}`, labels)
  const noneIsOpen = () => eventually(async () => expect(await counted('streams_open')).to.equal(0))
  const grant = (permissions: string[]) =>
    upsertMember(database.dataSource, member.organisationId, {
      id: member.memberId,
      name: 'Test Member',
      email: 'test@test.example',
      fullAccess: false,
      pushEnabled: false,
      permissions,
    })

  it('receives a comment at intervals as a heartbeat', async () => {
    const { comments } = await open()
    await eventually(() => expect(comments.length).to.be.at.least(3))
    expect(new Set(comments)).to.deep.equal(new Set(['heartbeat']))
  })

  it('advances its position past events that it does not send', async () => {
    const reader = await open({ query: { events: 'invoice:paid' } })
    const everything = await open()
    await publish()
    await eventually(() => expect(everything.events).to.have.length(1))
    const before = reader.lastEventId()
    await eventually(() => expect(reader.lastEventId()).to.not.equal(before))
    expect(reader.events).to.deep.equal([])
    const resumed = await open({ lastEventId: reader.lastEventId()! })
    await publish()
    await eventually(() => expect(everything.events).to.have.length(2))
    await eventually(() => expect(resumed.events).to.deep.equal(everything.events.slice(1)))
  })

  const CUTS: [what: string, change: () => Promise<unknown>, status: number][] = [
    [
      'its key is revoked',
      () =>
        database.dataSource.query('UPDATE api_key SET revoked_at = now() WHERE member_id = $1', [
          member.memberId,
        ]),
      401,
    ],
    [
      'its key expires',
      () =>
        database.dataSource.query('UPDATE api_key SET expires_at = now() WHERE member_id = $1', [
          member.memberId,
        ]),
      401,
    ],
    [
      'its key gets another value',
      () =>
        database.dataSource.query('UPDATE api_key SET hash = $2 WHERE member_id = $1', [
          member.memberId,
          hashCredential('another-value-of-the-key'),
        ]),
      401,
    ],
    ['the member loses a permission', () => grant(['invoice:read']), 403],
  ]
  for (const [what, change, status] of CUTS) {
    it(`ends within moments when ${what}, and cannot be opened again`, async () => {
      await grant(['invoice:read', 'customer:read'])
      const reader = await open({ query: { events: 'customer:created' } })
      await change()
      expect(await reader.ended).to.equal(true)
      expect(await counted('streams_ended_total', { reason: 'rights' })).to.equal(1)
      expect((await open({ query: { events: 'customer:created' } })).status).to.equal(status)
    })
  }

  it('ends when the member loses full access, also where it keeps every permission', async () => {
    const reader = await open({ query: { events: '*' } })
    await database.dataSource.query('UPDATE member SET full_access = false WHERE id = $1', [member.memberId])
    expect(await reader.ended).to.equal(true)
  })

  it('continues when the rights of others change', async () => {
    const reader = await open()
    const neighbour = await createMember(database.dataSource, { organisationId: member.organisationId })
    const theirs = await open({}, neighbour)
    await database.dataSource.query('UPDATE api_key SET revoked_at = now() WHERE member_id = $1', [
      neighbour.memberId,
    ])
    await theirs.ended
    await publish()
    await eventually(() => expect(reader.events).to.have.length(1))
  })

  it('is limited in number per organisation and per process', async () => {
    for (let opened = 0; opened < PER_ORGANISATION; opened++) expect((await open()).status).to.equal(200)
    const path = `/api/orgs/${member.organisationId}/events/stream`
    const refused = await api.call('GET', path, { apiKey: member.apiKey })
    expect(refused.status).to.equal(429)
    expect(refused.json).to.include({ code: 'too_many_streams' })
    expect(Number(refused.headers.get('retry-after'))).to.be.at.least(1)
    const colleague = await createMember(database.dataSource, { organisationId: member.organisationId })
    expect((await open({}, colleague)).status).to.equal(429)
    const others = await createMember(database.dataSource)
    expect((await open({}, others)).status).to.equal(200)
    expect((await open({}, others)).status).to.equal(503)
    await readers[0]!.close()
    await eventually(async () => expect((await open()).status).to.equal(200))
  })

  it('leaves nothing behind when its client goes, however many come and go', async () => {
    const comeAndGo = async () => {
      for (let times = 0; times < 50; times++) await (await open()).close()
    }
    await Promise.all([comeAndGo(), comeAndGo()])
    await noneIsOpen()
    for (let opened = 0; opened < PER_ORGANISATION; opened++) expect((await open()).status).to.equal(200)
  })

  it('is disconnected when its client does not read, delays no other, and can be resumed without a gap', async () => {
    const fast = await open()
    const { socket, ids } = await openAndStop()
    // Larger than what all the buffers on the way take in.
    await database.dataSource.query(
      `INSERT INTO event (id, organisation_id, key, body, emitted_at, trace_id)
       SELECT uuidv7(), $1, 'customer:created', convert_to('{"n":"' || repeat('x', 200000) || '"}', 'UTF8'), now(), 't'
         FROM generate_series(1, 60)`,
      [member.organisationId],
    )
    await eventually(() => expect(fast.events).to.have.length(60))
    await eventually(async () => expect(await counted('streams_ended_total', { reason: 'slow' })).to.equal(1))
    socket.resume()
    await once(socket, 'close')
    expect(ids.length).to.be.within(1, 59)
    const again = await open({ lastEventId: ids.at(-1)! })
    await eventually(() => expect(again.events).to.have.length(60 - ids.length))
    expect([...ids, ...again.events.map(({ id }) => id)]).to.deep.equal(fast.events.map(({ id }) => id))
  })

  it('delivers everything in order to a client that reads slowly, and reads each event once', async () => {
    const fast = await open()
    const { socket, ids } = await openAndStop()
    const reading = setInterval(() => {
      socket.resume()
      setImmediate(() => socket.pause())
    }, 20)
    await database.dataSource.query(
      `INSERT INTO event (id, organisation_id, key, body, emitted_at, trace_id)
       SELECT uuidv7(), $1, 'customer:created', convert_to('{"n":"' || repeat('x', 10000) || '"}', 'UTF8'), now(), 't'
         FROM generate_series(1, 1000)`,
      [member.organisationId],
    )
    await eventually(() => expect(fast.events).to.have.length(1000))
    await eventually(() => expect(ids).to.deep.equal(fast.events.map(({ id }) => id)))
    clearInterval(reading)
    socket.destroy()
    // By each of the two clients.
    expect(pageRows).to.be.at.most(2000)
  })

  it('ends cleanly when the process stops, with a time to reconnect, and none is opened any more', async () => {
    const reader = await open()
    await publish()
    await eventually(() => expect(reader.events).to.have.length(1))
    await api.close()
    expect(await reader.ended).to.equal(true)
    expect(reader.retries).to.have.length(2)
    expect(await counted('streams_ended_total', { reason: 'stopped' })).to.equal(1)
  })

  it('counts open streams and sent events', async () => {
    const [one, two] = [await open(), await open({ query: { events: 'invoice:paid' } })]
    await publish()
    await eventually(() => expect(one.events).to.have.length(1))
    expect(await counted('streams_open')).to.equal(2)
    expect(await counted('stream_events_sent_total')).to.equal(1)
    await Promise.all([one.close(), two.close()])
    await noneIsOpen()
    expect(await counted('streams_ended_total', { reason: 'client' })).to.equal(2)
  })

  /** A client on a bare socket, which stops reading once the stream has begun. `ids`: of the events that it has read. */
  async function openAndStop(): Promise<{ socket: Socket; ids: (string | undefined)[] }> {
    const { hostname, port } = new URL(api.url)
    const socket = connect(Number(port), hostname)
    const ids: (string | undefined)[] = []
    const parser = createParser({
      onEvent({ id, event }) {
        if (event !== 'position') ids.push(id)
      },
    })
    socket.on('error', () => undefined)
    // Without chunks, what follows the head is the stream as it is.
    socket.write(
      `GET /api/orgs/${member.organisationId}/events/stream HTTP/1.0\r\nx-api-key: ${member.apiKey}\r\n\r\n`,
    )
    socket.setEncoding('utf8').on('data', (chunk: string) => parser.feed(chunk))
    await once(socket, 'data')
    socket.pause()
    return { socket, ids }
  }
})

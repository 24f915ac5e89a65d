import { expect } from 'chai'
import { builtInCatalogue } from '../../../src/catalogue/built-in-catalogue.ts'
import { createMember, createWebhookRow, type TestMember } from '../../helpers/database/factories.ts'
import { eventually } from '../../helpers/eventually.ts'
import { readStream, type StreamOptions, type StreamReader } from '../../helpers/stream/stream-reader.ts'
import { useApi } from '../../helpers/api/api.ts'

/** What JSON writers, terminals and line-based protocols stumble over, as a producer may write it. */
const AWKWARD =
  '{"event":"comment:created", "data":{"text":"line\\nline\\r\\n\u2028\u2029 🏕️ \\u0000 \\u2028 \\ud83c\\udfd5", "n":1.50e+2,\r\n "z":1,"a":12345678901234567890}}'

describe('GET /events/stream', () => {
  const suite = useApi()
  let member: TestMember
  let readers: StreamReader[] = []

  beforeEach(async () => {
    member = await createMember(suite.database.dataSource)
  })
  afterEach(async () => {
    await Promise.all(readers.map((reader) => reader.close()))
    readers = []
  })

  async function open(options: StreamOptions = {}, by: TestMember = member): Promise<StreamReader> {
    const reader = await readStream(suite.api.url, by.organisationId, { apiKey: by.apiKey, ...options })
    readers.push(reader)
    return reader
  }
  async function publish(event: string, raw?: string, by: TestMember = member): Promise<string> {
    const { status, json, text } = await suite.api.call('POST', `/api/orgs/${by.organisationId}/events`, {
      apiKey: by.apiKey,
      ...(raw === undefined ? { body: { event, data: { id: 'x', n: 1 } } } : { raw }),
    })
    expect(status, text).to.equal(202)
    return (json as { id: string }).id
  }
  const call = (query: string, apiKey = member.apiKey, method = 'GET') =>
    suite.api.call(method, `/api/orgs/${member.organisationId}/events/stream${query}`, { apiKey })
  const limited = (permissions: string[]) =>
    createMember(suite.database.dataSource, { organisationId: member.organisationId, permissions })

  it('sends each event with its id, its key, and on one line the very bytes that webhooks get', async () => {
    const webhook = { organisationId: member.organisationId, url: 'https://receiver.example.com/' }
    await createWebhookRow(suite.database.dataSource, webhook)
    const reader = await open()
    const id = await publish('comment:created', AWKWARD)
    await eventually(() => expect(reader.events).to.have.length(1))
    const [stored] = await suite.database.dataSource.query<{ body: Buffer }[]>(
      'SELECT body FROM event e JOIN delivery d ON d.event_id = e.id WHERE e.id = $1',
      [id],
    )
    const frame = Buffer.concat([
      Buffer.from(`id: ${id}\nevent: comment:created\ndata: `),
      stored!.body,
      Buffer.from('\n\n'),
    ])
    expect(reader.bytes().includes(frame)).to.equal(true)
    expect(reader.events[0]).to.deep.equal({ id, event: 'comment:created', data: stored!.body.toString() })
    expect(reader.events[0]!.data).to.include(
      '"line\\nline\\r\\n\u2028\u2029 🏕️ \\u0000 \\u2028 \\ud83c\\udfd5"',
    )
    expect(reader.events[0]!.data).to.include('"n":1.50e+2,"z":1,"a":12345678901234567890')
  })

  it('answers at once, with headers that keep proxies from buffering or compressing it', async () => {
    const { status, headers, retries } = await open()
    expect(status).to.equal(200)
    expect(headers.get('content-type')).to.equal('text/event-stream; charset=utf-8')
    expect(headers.get('cache-control')).to.equal('no-store, no-transform')
    expect(headers.get('x-accel-buffering')).to.equal('no')
    expect(headers.get('content-encoding')).to.equal(null)
    await eventually(() => expect(retries).to.deep.equal([3_000]))
  })

  it('sends events that no webhook is subscribed to, and only those that are published from now on', async () => {
    await publish('customer:created')
    const reader = await open()
    const id = await publish('customer:updated')
    await eventually(() => expect(reader.events.map((event) => event.id)).to.deep.equal([id]))
  })

  it('sends only the keys of `events`', async () => {
    const some = await open({ query: { events: ' invoice:paid, customer:created,invoice:paid' } })
    const settings = await open({ query: { events: 'organizationSettings:updated' } })
    const all = await open({ query: { events: '*' } })
    const keys = ['comment:created', 'customer:created', 'organizationSettings:updated', 'comment:updated']
    for (const key of keys)
      await publish(key, `{"event":"${key}","data":{"id":"x","openingHoursChanged":true}}`)
    await eventually(() => expect(all.events.map(({ event }) => event)).to.deep.equal(keys))
    expect(some.events.map(({ event }) => event)).to.deep.equal(['customer:created'])
    expect(settings.events.map(({ event }) => event)).to.deep.equal(['organizationSettings:updated'])
  })

  it('sends without `events` every key that the member may see, and nothing else', async () => {
    const reader = await open({}, await limited(['customer:read', 'comment:read']))
    const silent = await open({}, await limited([]))
    const full = await open()
    const keys = ['invoice:created', 'customer:created', 'comment:created']
    for (const key of keys) await publish(key)
    await eventually(() => expect(full.events).to.have.length(3))
    expect(reader.events.map(({ event }) => event)).to.deep.equal(keys.slice(1))
    expect(silent.events).to.deep.equal([])
  })

  it('sends nothing of another organisation', async () => {
    const stranger = await createMember(suite.database.dataSource)
    const reader = await open()
    await publish('customer:created', undefined, stranger)
    const id = await publish('customer:created')
    await eventually(() => expect(reader.events.map((event) => event.id)).to.deep.equal([id]))
  })

  it('refuses unknown keys, naming each', async () => {
    const { status, json } = await call('?events=invoice:paid,nope:nope,webhook:test,')
    expect(status).to.equal(422)
    const { errors } = json as { errors: { pointer: string; code: string; detail: string }[] }
    expect(errors.map(({ pointer, code }) => `${pointer} ${code}`)).to.deep.equal(
      Array.from({ length: 3 }, () => '/events unknown_event_key'),
    )
    expect(errors.map(({ detail }) => detail).join())
      .to.include('"nope:nope"')
      .and.include('"webhook:test"')
    const mixed = (await call('?events=*,invoice:paid')).json
    expect(mixed).to.have.nested.property('errors[0].code', 'wildcard_not_alone')
    expect(mixed).to.have.property('detail', '"*" means every event and must stand alone.')
    for (const query of ['?events=', '?event=invoice:paid', '?events=a&events=b'])
      expect((await call(query)).status, query).to.equal(422)
  })

  it('refuses a key without the permission, naming what is missing, and `*` without full access', async () => {
    const { apiKey } = await limited(['invoice:read', 'event:publish'])
    const answer = await call('?events=invoice:paid,customer:created,comment:created', apiKey)
    expect(answer.status).to.equal(403)
    expect(answer.json).to.include({ code: 'missing_permission' })
    expect((answer.json as { missingPermissions: string[] }).missingPermissions).to.deep.equal([
      'customer:read',
      'comment:read',
    ])
    const everything = await limited([
      ...new Set(builtInCatalogue.eventKeys.map(({ permission }) => permission)),
    ])
    const all = await call('?events=*', everything.apiKey)
    expect([all.status, (all.json as { missingPermissions: string[] }).missingPermissions]).to.deep.equal([
      403,
      ['fullAccess'],
    ])
    expect((await call('?events=*')).status).to.equal(200)
  })

  it('answers HEAD with the headers alone, and other methods with 405', async () => {
    const head = await call('', member.apiKey, 'HEAD')
    expect(head.status).to.equal(200)
    expect(head.headers.get('content-type')).to.match(/^text\/event-stream/)
    const post = await call('', member.apiKey, 'POST')
    expect(post.status).to.equal(405)
    expect(post.headers.get('allow')?.split(', ')).to.have.members(['GET', 'HEAD'])
  })
})

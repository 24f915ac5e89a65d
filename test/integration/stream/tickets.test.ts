import { expect } from 'chai'
import { EventSource } from 'eventsource'
import type { ApiDependencies } from '../../../src/http/api.ts'
import { createCallerLookup } from '../../../src/accounts/caller-lookup.ts'
import { createTestApi, type TestApi } from '../../helpers/api/api.ts'
import { createTestDatabase, type TestDatabase } from '../../helpers/database/database.ts'
import { eventually } from '../../helpers/eventually.ts'
import {
  createMember,
  publishRow,
  replaceKeyValue,
  type TestMember,
} from '../../helpers/database/factories.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'

describe('POST /events/stream-tickets', () => {
  let database: TestDatabase
  let api: TestApi
  let other: TestApi
  let member: TestMember
  const lines: unknown[] = []

  before(async () => {
    const note = (line: unknown): void => void lines.push(line)
    const logger: ApiDependencies['logger'] = Object.assign(
      Object.create(silentLogger) as typeof silentLogger,
      {
        info: note,
        warn: note,
        error: note,
      },
    )
    database = await createTestDatabase()
    api = await createTestApi(database.dataSource, { logger })
    other = await createTestApi(database.dataSource, { logger })
  })
  after(async () => {
    await api.close()
    await other.close()
    await database.drop()
  })
  beforeEach(async () => {
    member = await createMember(database.dataSource)
    lines.length = 0
  })

  const pathOf = ({ organisationId }: TestMember = member) => `/api/orgs/${organisationId}/events/stream`
  async function ticket(by: TestMember = member): Promise<string> {
    const answer = await api.call('POST', `${pathOf(by)}-tickets`, { apiKey: by.apiKey })
    expect(answer.status).to.equal(201)
    return (answer.json as { ticket: string }).ticket
  }
  const redeem = async (value: string, query = '', at = api, path = pathOf()) =>
    (await at.call('GET', `${path}?ticket=${value}${query}`)).status

  it('gives a ticket of 30 seconds, of which only a hash is kept', async () => {
    const before = Date.now()
    const { json, headers } = await api.call('POST', `${pathOf()}-tickets`, { apiKey: member.apiKey })
    const { ticket: value, expiresAt } = json as { ticket: string; expiresAt: string }
    expect(value).to.match(/^[\w-]{43}$/)
    expect(Date.parse(expiresAt) - before).to.be.within(29_000, 33_000)
    expect(headers.get('cache-control')).to.equal('no-store')
    const rows = JSON.stringify(await database.dataSource.query('SELECT * FROM stream_ticket'))
    expect(rows).to.not.include(value)
    expect(rows).to.not.include(Buffer.from(value, 'base64url').toString('hex'))
  })

  it('lets an EventSource that is not ours read the stream, with no key in its URL', async () => {
    const url = `${api.url}${pathOf()}?events=customer:created&ticket=${await ticket()}`
    const source = new EventSource(url)
    const seen: { data: string; lastEventId: string }[] = []
    source.addEventListener('customer:created', ({ data, lastEventId }) =>
      seen.push({ data: data as string, lastEventId }),
    )
    await eventually(() => expect(source.readyState).to.equal(EventSource.OPEN))
    await publishRow(database.dataSource, member.organisationId)
    await eventually(() => expect(seen).to.have.length(1))
    const [stored] = await database.dataSource.query<{ id: string; body: Buffer }[]>(
      'SELECT id, body FROM event WHERE organisation_id = $1',
      [member.organisationId],
    )
    expect(seen[0]).to.deep.equal({ data: stored!.body.toString(), lastEventId: stored!.id })
    source.close()
  })

  it('opens one stream, in any process', async () => {
    const value = await ticket()
    const tries = Array.from({ length: 8 }, (_, index) => redeem(value, '', index % 2 === 0 ? api : other))
    const statuses = await Promise.all(tries)
    expect(statuses.sort()).to.deep.equal([200, ...Array.from({ length: 7 }, () => 401)])
    const { status, json } = await api.call('GET', `${pathOf()}?ticket=${value}`)
    expect({ status, detail: (json as { detail: string }).detail }).to.deep.equal({
      status: 401,
      detail: 'The ticket is unknown, used or expired. Request another one.',
    })
  })

  it('has the rights of the key that requested it, and no others', async () => {
    const { organisationId } = member
    const reader = await createMember(database.dataSource, { organisationId, permissions: ['invoice:read'] })
    expect(await redeem(await ticket(reader), '&events=invoice:paid')).to.equal(200)
    expect(await redeem(await ticket(reader), '&events=customer:created')).to.equal(403)
    const stranger = await createMember(database.dataSource)
    expect(await redeem(await ticket(stranger))).to.equal(404)
  })

  it('opens nothing when it is too old, made up, or its key is revoked', async () => {
    const expired = await ticket()
    await database.dataSource.query(`UPDATE stream_ticket SET expires_at = now() - interval '1 second'`)
    const revoked = await ticket()
    await database.dataSource.query('UPDATE api_key SET revoked_at = now() WHERE member_id = $1', [
      member.memberId,
    ])
    for (const value of [expired, revoked, 'x', '', 'x'.repeat(5_000)])
      expect(await redeem(value), value).to.equal(401)
  })

  it('opens nothing when its key has another value meanwhile', async () => {
    const value = await ticket()
    await replaceKeyValue(database.dataSource, member)
    expect(await redeem(value)).to.equal(401)
  })

  it('is not given for a value that was just replaced, nor is a stream, where the process still remembers it', async () => {
    const remembering = await createTestApi(database.dataSource, {
      findCaller: createCallerLookup(database.dataSource, 60_000),
    })
    const { apiKey } = member
    const status = async (method: string, path: string) =>
      (await remembering.call(method, path, { apiKey })).status
    expect(await status('POST', `${pathOf()}-tickets`)).to.equal(201)
    await replaceKeyValue(database.dataSource, member)
    expect(await status('POST', `${pathOf()}-tickets`)).to.equal(401)
    expect(await status('GET', pathOf())).to.equal(401)
    await remembering.close()
  })

  it('opens nothing but the stream', async () => {
    const value = await ticket()
    const { organisationId } = member
    for (const path of [`/api/orgs/${organisationId}/webhooks`, '/api/event-keys'])
      expect(await redeem(value, '', api, path), path).to.equal(401)
    expect((await api.call('POST', `${pathOf()}-tickets?ticket=${value}`)).status).to.equal(401)
    expect(await redeem(value)).to.equal(200)
  })

  it('rejects a key in the URL', async () => {
    for (const name of ['ticket', 'x-api-key', 'apiKey', 'key'])
      expect((await api.call('GET', `${pathOf()}?${name}=${member.apiKey}`)).status, name).to.equal(401)
  })

  it('is never logged', async () => {
    const [used, unused] = [await ticket(), await ticket()]
    await redeem(used)
    await redeem(used)
    await eventually(() => expect(JSON.stringify(lines)).to.include('stream.ended'))
    for (const value of [used, unused]) expect(JSON.stringify(lines)).to.not.include(value)
  })

  it('is gone from the table soon after it has expired', async () => {
    await ticket()
    await database.dataSource.query(`UPDATE stream_ticket SET expires_at = now() - interval '1 second'`)
    await ticket()
    await ticket()
    const left = await database.dataSource.query<object[]>(
      'SELECT 1 FROM stream_ticket WHERE expires_at < now()',
    )
    expect(left).to.deep.equal([])
  })
})

import { expect } from 'chai'
import { lockOrganisation } from '../../../src/db/queries/organisations.ts'
import { createTestApi, type ApiResponse, type TestApi } from '../../helpers/api/api.ts'
import {
  createMember,
  createWebhookRow,
  publishRow,
  type TestMember,
} from '../../helpers/database/factories.ts'
import { useDatabase } from '../../helpers/database/database.ts'

const MAX = 100
const url = 'https://receiver.example.com/'
const input = { url, subscribedEventKeys: ['customer:created'], enabled: true }

describe('the limit on webhooks of an organisation', () => {
  const database = useDatabase()
  let api: TestApi
  let member: TestMember

  before(async () => {
    api = await createTestApi(database.dataSource, { webhooksPerOrganisation: MAX })
  })
  after(() => api.close())
  beforeEach(async () => {
    member = await createMember(database.dataSource)
  })

  const webhooks = () => `/api/orgs/${member.organisationId}/webhooks`
  const create = (key?: string): Promise<ApiResponse> =>
    api.call('POST', webhooks(), {
      apiKey: member.apiKey,
      body: input,
      ...(key === undefined ? {} : { headers: { 'idempotency-key': key } }),
    })

  async function have(count: number, enabled = true): Promise<string[]> {
    const { organisationId } = member
    const rows = Array.from({ length: count }, () =>
      createWebhookRow(database.dataSource, { organisationId, url, enabled }),
    )
    return (await Promise.all(rows)).map(({ id }) => id)
  }

  async function count(): Promise<number> {
    const { data } = (await api.call('GET', webhooks(), { apiKey: member.apiKey })).json as { data: object[] }
    return data.length
  }

  it('refuses further webhooks, and states the limit', async () => {
    await have(MAX - 1)
    expect((await create()).status).to.equal(201)
    const answer = await create()
    expect(answer.status).to.equal(409)
    expect(answer.headers.get('content-type')).to.match(/^application\/problem\+json\b/)
    expect(answer.json).to.include({ code: 'too_many_webhooks', status: 409 })
    expect(answer.json).to.have.property('detail').that.includes('at most 100 webhooks')
    expect(await count()).to.equal(MAX)
  })

  it('counts disabled webhooks, and deleted ones not', async () => {
    const [first] = await have(MAX, false)
    expect((await create()).status).to.equal(409)
    await api.call('DELETE', `${webhooks()}/${first!}`, { apiKey: member.apiKey })
    expect((await create()).status).to.equal(201)
    expect((await create()).status).to.equal(409)
  })

  it('permits reading, changing and deleting where there are more than the limit', async () => {
    const [first] = await have(MAX + 2)
    const path = `${webhooks()}/${first!}`
    const call = (method: string, body?: object) =>
      api.call(method, path, { apiKey: member.apiKey, ...(body === undefined ? {} : { body }) })
    expect(await count()).to.equal(MAX + 2)
    expect((await call('PATCH', { description: 'kept' })).status).to.equal(200)
    expect((await call('GET')).status).to.equal(200)
    expect((await create()).status).to.equal(409)
    expect((await call('DELETE')).status).to.equal(204)
    expect((await create()).status).to.equal(409)
  })

  it('applies to each organisation separately', async () => {
    await have(MAX)
    member = await createMember(database.dataSource)
    expect((await create()).status).to.equal(201)
  })

  for (const [title, keyOf] of [
    ['', () => undefined],
    [', with an Idempotency-Key each', (n: number) => `parallel-${n}`],
  ] as const) {
    it(`is exact among fifty requests at once${title}`, async () => {
      await have(95)
      const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => create(keyOf(n))))
      expect(answers.filter(({ status }) => status === 201)).to.have.lengthOf(5)
      expect(answers.filter(({ status }) => status === 409)).to.have.lengthOf(45)
      expect(await count()).to.equal(MAX)
    })
  }

  it('answers a repeated request, and forgets the key of a refused one', async () => {
    await have(MAX - 1)
    const first = await create('the-last')
    expect(first.status).to.equal(201)
    expect((await create('refused')).status).to.equal(409)
    const repeat = await create('the-last')
    expect([repeat.status, repeat.text]).to.deep.equal([201, first.text])
    await api.call('DELETE', String(first.headers.get('location')), { apiKey: member.apiKey })
    expect((await create('refused')).status).to.equal(201)
  })

  it('delays no event while a webhook is created', async () => {
    await have(1)
    await database.dataSource.transaction(async (manager) => {
      await lockOrganisation(manager, member.organisationId)
      const [delivery] = await publishRow(database.dataSource, member.organisationId)
      expect(delivery).to.have.property('deliveryId')
    })
  })
})

import { expect } from 'chai'
import { type ApiResponse, useApi } from '../../helpers/api/api.ts'
import { createMember, type TestMember } from '../../helpers/database/factories.ts'

const input = { url: 'https://receiver.example.com/', subscribedEventKeys: ['*'], enabled: true }

describe('an Idempotency-Key on POST /webhooks', () => {
  const suite = useApi()
  let member: TestMember

  beforeEach(async () => {
    member = await createMember(suite.database.dataSource)
  })

  const create = (key: string, body: object = input, apiKey = member.apiKey): Promise<ApiResponse> =>
    suite.api.call('POST', `/api/orgs/${member.organisationId}/webhooks`, {
      apiKey,
      body,
      headers: { 'idempotency-key': key },
    })

  async function count(): Promise<number> {
    const [row] = await suite.database.dataSource.query<{ count: number }[]>(
      'SELECT count(*)::int AS count FROM webhook WHERE organisation_id = $1',
      [member.organisationId],
    )
    return row!.count
  }

  it('makes one webhook of a hundred simultaneous requests, and gives all the same answer', async () => {
    const answers = await Promise.all(Array.from({ length: 100 }, () => create('create-1')))
    expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([201]))
    expect(new Set(answers.map(({ text }) => text)).size).to.equal(1)
    expect(new Set(answers.map(({ headers }) => headers.get('location'))).size).to.equal(1)
    expect(await count()).to.equal(1)
  })

  it('is refused with another body, and makes nothing', async () => {
    await create('once')
    const answer = await create('once', { ...input, enabled: false })
    expect(answer.status).to.equal(422)
    expect(answer.json).to.include({ code: 'idempotency_key_reused' })
    expect(await count()).to.equal(1)
  })

  it('shows no member the answer to another', async () => {
    const { organisationId } = member
    const { apiKey } = await createMember(suite.database.dataSource, { organisationId })
    const [mine, theirs] = [await create('shared'), await create('shared', input, apiKey)]
    expect([mine.status, theirs.status]).to.deep.equal([201, 201])
    expect((mine.json as { id: string }).id).to.not.equal((theirs.json as { id: string }).id)
  })

  it('is separate from the same key of a publish', async () => {
    await create('across')
    const answer = await suite.api.call('POST', `/api/orgs/${member.organisationId}/events`, {
      apiKey: member.apiKey,
      body: { event: 'comment:created', data: {} },
      headers: { 'idempotency-key': 'across' },
    })
    expect(answer.status).to.equal(202)
  })

  it('answers 404 once the webhook is deleted, instead of creating another', async () => {
    const first = await create('gone')
    await suite.api.call('DELETE', first.headers.get('location') ?? '', { apiKey: member.apiKey })
    expect((await create('gone')).status).to.equal(404)
    expect(await count()).to.equal(1)
  })

  it('is forgotten with a request that was refused', async () => {
    expect((await create('again', { ...input, enabled: 'yes' })).status).to.equal(422)
    expect((await create('again')).status).to.equal(201)
  })

  it('is forgotten after a day', async () => {
    const first = await create('old')
    await suite.database.dataSource.query(
      `UPDATE idempotency_key SET created_at = now() - interval '25 hours'`,
    )
    const second = await create('old', { ...input, enabled: false })
    expect(second.status).to.equal(201)
    expect((second.json as { id: string }).id).to.not.equal((first.json as { id: string }).id)
  })
})

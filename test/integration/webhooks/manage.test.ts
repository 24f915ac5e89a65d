import { expect } from 'chai'
import { type ApiResponse, type CallOptions, useApi } from '../../helpers/api/api.ts'
import { createMember, createWebhookRow, type TestMember } from '../../helpers/database/factories.ts'

type Webhook = {
  id: string
  url: string
  description: string
  subscribedEventKeys: string[]
  enabled: boolean
  createdAt: string
  updatedAt: string
}

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const FIELDS = [
  ...['id', 'url', 'description', 'subscribedEventKeys', 'enabled', 'operatorHold'],
  ...['createdAt', 'updatedAt'],
]
const input = {
  url: 'https://receiver.example.com/hook',
  subscribedEventKeys: ['invoice:paid', 'customer:created'],
  enabled: true,
}

describe('the webhooks of an organisation', () => {
  const suite = useApi()
  let member: TestMember

  beforeEach(async () => {
    member = await createMember(suite.database.dataSource)
  })

  const call = (method: string, path = '', options: CallOptions = {}): Promise<ApiResponse> =>
    suite.api.call(method, `/api/orgs/${member.organisationId}/webhooks${path}`, {
      apiKey: member.apiKey,
      ...options,
    })

  async function create(body: object = input): Promise<Webhook & { signingSecret: string }> {
    const answer = await call('POST', '', { body })
    expect(answer.status, answer.text).to.equal(201)
    return answer.json as Webhook & { signingSecret: string }
  }

  function withoutSecret(created: Webhook): Webhook {
    return Object.fromEntries(Object.entries(created).filter(([name]) => name !== 'signingSecret')) as Webhook
  }

  describe('POST /webhooks', () => {
    it('answers with the webhook, its signing secret and its path', async () => {
      const answer = await call('POST', '', { body: input })
      expect(answer.status).to.equal(201)
      const created = answer.json as Webhook & { signingSecret: string }
      expect(Object.keys(created)).to.have.members([...FIELDS, 'signingSecret'])
      expect(created).to.deep.include(input)
      expect(created.signingSecret).to.match(/^[0-9a-f]{64}$/)
      expect(created.id).to.match(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
      expect(created.createdAt).to.match(ISO)
      expect(created.updatedAt).to.equal(created.createdAt)
      const location = answer.headers.get('location') ?? ''
      expect(location).to.equal(`/api/orgs/${member.organisationId}/webhooks/${created.id}`)
      expect((await suite.api.call('GET', location, { apiKey: member.apiKey })).json).to.deep.equal(
        withoutSecret(created),
      )
    })

    it('keeps the canonical form of the URL', async () => {
      const { id, url } = await create({ ...input, url: 'HTTPS://Receiver.Example.COM:443/a/../Hook?x=1' })
      expect(url).to.equal('https://receiver.example.com/Hook?x=1')
      expect((await call('GET', `/${id}`)).json).to.include({ url })
    })

    it('holds no secret in clear in any table', async () => {
      const { signingSecret } = (
        await call('POST', '', { body: input, headers: { 'idempotency-key': 'sealed-1' } })
      ).json as { signingSecret: string }
      const rows = await suite.database.dataSource.query<{ row: string; secret: string | null }[]>(
        `SELECT w::text AS row, secret FROM webhook w UNION ALL SELECT i::text, NULL FROM idempotency_key i`,
      )
      const sealed = rows.flatMap(({ secret }) => secret?.split('|') ?? [])
      const held = [
        ...rows.map(({ row }) => row),
        ...sealed.flatMap((part) => [Buffer.from(part, 'base64url'), Buffer.from(part, 'hex')]),
      ].map((bytes) => bytes.toString('latin1'))
      expect(sealed).to.not.be.empty
      expect(held.join()).to.include(member.organisationId)
      for (const secret of [signingSecret, Buffer.from(signingSecret, 'hex').toString('latin1')])
        expect(held.join()).to.not.include(secret)
    })
  })

  describe('GET /webhooks', () => {
    it('lists those of the organisation oldest first, without their secrets, and forbids caching', async () => {
      const { organisationId } = await createMember(suite.database.dataSource)
      await createWebhookRow(suite.database.dataSource, { organisationId, url: input.url })
      const created = [await create(), await create({ ...input, enabled: false }), await create()]
      expect(created.map(({ enabled }) => enabled)).to.deep.equal([true, false, true])
      const answer = await call('GET')
      expect(answer.status).to.equal(200)
      expect(answer.json).to.deep.equal({ data: created.map(withoutSecret) })
      expect(answer.headers.get('cache-control')).to.equal('no-store')
    })
  })

  describe('PATCH /webhooks/:id', () => {
    it('changes only what is named', async () => {
      const created = await create()
      for (const change of [
        { enabled: false },
        { url: 'https://other.example.com/' },
        { subscribedEventKeys: ['*'] },
        { description: 'Invoices → accounting' },
      ]) {
        const before = (await call('GET', `/${created.id}`)).json as Webhook
        const answer = await call('PATCH', `/${created.id}`, { body: change })
        expect(answer.status, answer.text).to.equal(200)
        const { updatedAt, ...after } = answer.json as Webhook
        const { updatedAt: earlier, ...expected } = { ...before, ...change }
        expect(after).to.deep.equal(expected)
        expect(Date.parse(updatedAt)).to.be.at.least(Date.parse(earlier))
        expect((await call('GET', `/${created.id}`)).json).to.deep.equal(answer.json)
      }
    })

    describe('by a member who lacks a permission', () => {
      let apiKey: string

      beforeEach(async () => {
        const { organisationId } = member
        const permissions = ['webhook:read', 'webhook:manage', 'invoice:read']
        apiKey = (await createMember(suite.database.dataSource, { organisationId, permissions })).apiKey
      })

      // `test/helpers/api/rights.ts` has every change that may and may not be made.
      const refused: [title: string, before: string[], change: object, missing: string[]][] = [
        [
          'of the subscription as it is and as it will be',
          ['call:created'],
          { subscribedEventKeys: ['customer:created'] },
          ['call:read', 'customer:read'],
        ],
        ['for * as it is', ['*'], { enabled: false, url: 'https://evil.example.com/' }, ['fullAccess']],
      ]
      for (const [title, subscribedEventKeys, change, missing] of refused) {
        it(`is refused ${title}, and changes nothing`, async () => {
          const created = withoutSecret(await create({ ...input, subscribedEventKeys }))
          const answer = await call('PATCH', `/${created.id}`, { apiKey, body: change })
          expect(answer.status).to.equal(403)
          expect(answer.json).to.deep.include({ code: 'missing_permission', missingPermissions: missing })
          expect((await call('GET', `/${created.id}`)).json).to.deep.equal(created)
        })
      }
    })
  })

  describe('GET /webhooks/:id/signing-secret', () => {
    it('shows the secret of the creation, also after a change, and forbids caching', async () => {
      const { id, signingSecret } = await create()
      await call('PATCH', `/${id}`, { body: { url: 'https://other.example.com/', enabled: false } })
      const answer = await call('GET', `/${id}/signing-secret`)
      expect(answer.status).to.equal(200)
      expect(answer.json).to.deep.equal({ signingSecret })
      expect(answer.headers.get('cache-control')).to.equal('no-store')
    })
  })

  describe('DELETE /webhooks/:id', () => {
    it('answers 204 with nothing, and wipes the secret from the database', async () => {
      const { id } = await create()
      const answer = await call('DELETE', `/${id}`)
      expect([answer.status, answer.text]).to.deep.equal([204, ''])
      expect((await call('GET')).json).to.deep.equal({ data: [] })
      const [row] = await suite.database.dataSource.query<{ secret: string | null }[]>(
        'SELECT secret FROM webhook WHERE id = $1',
        [id],
      )
      expect(row).to.deep.equal({ secret: null })
    })
  })
})

import { createECDH, randomBytes } from 'node:crypto'
import { expect } from 'chai'
import {
  deletePushSubscriptions,
  findPushSubscription,
  listPushSubscriptions,
  type PushTarget,
  upsertPushSubscription,
} from '../../../../src/db/queries/push-subscriptions.ts'
import { newId } from '../../../../src/ids.ts'
import {
  type ApiResponse,
  type CallOptions,
  createTestApi,
  type TestApi,
  useApi,
} from '../../../helpers/api/api.ts'
import { createMember, TEST_VAPID_PUBLIC_KEY, type TestMember } from '../../../helpers/database/factories.ts'

type Subscription = { id: string; endpoint: string; createdAt: string }
type Browser = { endpoint: string; expirationTime: null; keys: { p256dh: string; auth: string } }

const UNKNOWN_ID = '01976f3e-8c1d-7a52-9b40-6d1f2e3a4b5c'
const MAX = 20

/** What `PushSubscription.toJSON()` gives in a browser. */
function browser(
  endpoint = `https://push.example.com/send/${randomBytes(9).toString('base64url')}`,
): Browser {
  const ecdh = createECDH('prime256v1')
  const p256dh = ecdh.generateKeys().toString('base64url')
  return { endpoint, expirationTime: null, keys: { p256dh, auth: randomBytes(16).toString('base64url') } }
}

describe('the push subscriptions of a member', () => {
  const suite = useApi()
  let member: TestMember
  let colleague: TestMember

  beforeEach(async () => {
    member = await createMember(suite.database.dataSource, { permissions: [] })
    const { organisationId } = member
    colleague = await createMember(suite.database.dataSource, { organisationId })
  })

  const call = (
    method: string,
    path = '',
    options: CallOptions & { as?: TestMember; on?: TestApi } = {},
  ): Promise<ApiResponse> => {
    const { as = member, on = suite.api, ...rest } = options
    return on.call(method, `/api/orgs/${as.organisationId}/push-subscriptions${path}`, {
      apiKey: as.apiKey,
      ...rest,
    })
  }

  async function subscribe(body = browser(), as = member): Promise<Subscription> {
    const answer = await call('POST', '', { body, as })
    expect(answer.status, answer.text).to.be.oneOf([200, 201])
    return answer.json as Subscription
  }

  async function subscriptions(as = member): Promise<Subscription[]> {
    const answer = await call('GET', '', { as })
    expect(answer.status, answer.text).to.equal(200)
    return (answer.json as { data: Subscription[] }).data
  }

  /** What sending takes, for each of a member's subscriptions. */
  async function targets({ organisationId, memberId } = member): Promise<(PushTarget | null)[]> {
    const { dataSource } = suite.database
    const shown = await listPushSubscriptions(dataSource, organisationId, memberId)
    return Promise.all(shown.map(({ id }) => findPushSubscription(dataSource, organisationId, id)))
  }

  const count = (answers: ApiResponse[], status: number): number =>
    answers.filter((answer) => answer.status === status).length

  describe('POST /push-subscriptions', () => {
    it('answers 201 with the subscription and its path, and without its keys', async () => {
      const body = browser()
      const answer = await call('POST', '', { body })
      expect(answer.status, answer.text).to.equal(201)
      const { id, endpoint, createdAt } = answer.json as Subscription
      expect(answer.json).to.have.all.keys('id', 'endpoint', 'createdAt')
      expect(endpoint).to.equal(body.endpoint)
      expect(createdAt).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      const location = answer.headers.get('location') ?? ''
      expect(location).to.equal(`/api/orgs/${member.organisationId}/push-subscriptions/${id}`)
      const { apiKey } = member
      expect((await suite.api.call('DELETE', location, { apiKey })).status).to.equal(204)
    })

    it('accepts keys with padding, and stores them without', async () => {
      const body = browser()
      const padded = { p256dh: `${body.keys.p256dh}=`, auth: `${body.keys.auth}==` }
      await subscribe({ ...body, keys: padded })
      expect((await targets())[0]).to.include(body.keys)
    })

    it('accepts an endpoint of 2048 characters, which has to fit into an index', async () => {
      const start = 'https://push.example.com/'
      const endpoint =
        start +
        randomBytes(1_600)
          .toString('base64url')
          .slice(0, 2_048 - start.length)
      expect(await subscribe(browser(endpoint))).to.include({ endpoint })
    })

    it('keeps one subscription per address, however the address is written', async () => {
      const one = await subscribe(browser('https://push.example.com/a'))
      const same = await subscribe(browser('HTTPS://Push.Example.COM:443/x/../a'))
      expect(same).to.deep.equal(one)
    })

    it('updates the keys of a known endpoint, under the same id', async () => {
      const before = browser()
      const first = await subscribe(before)
      const again = browser(before.endpoint)
      const answer = await call('POST', '', { body: again })
      expect(answer.status, answer.text).to.equal(200)
      expect(answer.json).to.deep.equal(first)
      expect(await targets()).to.deep.equal([
        { id: first.id, memberId: member.memberId, endpoint: before.endpoint, ...again.keys },
      ])
    })

    it('creates one row for 20 concurrent requests with the same endpoint', async () => {
      const body = browser()
      const answers = await Promise.all(Array.from({ length: 20 }, () => call('POST', '', { body })))
      expect([count(answers, 201), count(answers, 200)]).to.deep.equal([1, 19])
      expect(new Set(answers.map(({ text }) => text)).size).to.equal(1)
      expect(await subscriptions()).to.deep.equal([answers[0]!.json])
    })

    it('refuses the twenty-first of a member, but not new keys for one of the twenty', async () => {
      const first = browser()
      await subscribe(first)
      for (let index = 1; index < MAX; index++) await subscribe()
      const refused = await call('POST', '', { body: browser() })
      expect(refused.status).to.equal(409)
      expect(refused.json).to.include({ code: 'too_many_subscriptions' })
      expect((await call('POST', '', { body: browser(first.endpoint) })).status).to.equal(200)
      await subscribe(browser(), colleague)
      const [oldest] = await subscriptions()
      await call('DELETE', `/${oldest!.id}`)
      expect((await call('POST', '', { body: browser() })).status).to.equal(201)
    })

    it('never lets a member have more than twenty, however many come at once', async () => {
      const answers = await Promise.all(
        Array.from({ length: 2 * MAX }, () => call('POST', '', { body: browser() })),
      )
      expect([count(answers, 201), count(answers, 409)]).to.deep.equal([MAX, MAX])
      expect(await subscriptions()).to.have.length(MAX)
    })

    it('answers 409 where push is not set up, and keeps nothing', async () => {
      const without = await createTestApi(suite.database.dataSource, { vapidPublicKey: null })
      try {
        const refused = await call('POST', '', { body: browser(), on: without })
        expect(refused.status).to.equal(409)
        expect(refused.json).to.include({ code: 'push_not_configured' })
        expect((await call('GET', '', { on: without })).json).to.deep.equal({
          data: [],
          pushEnabled: true,
          vapidPublicKey: null,
        })
      } finally {
        await without.close()
      }
    })

    it('keeps the endpoint of one browser for each of its members', async () => {
      const body = browser()
      const stranger = await createMember(suite.database.dataSource)
      const made = [
        await subscribe(body),
        await subscribe(body, colleague),
        await subscribe(browser(body.endpoint), stranger),
      ]
      expect(new Set(made.map(({ id }) => id)).size).to.equal(3)
      expect((await targets())[0]).to.include(body.keys)
    })
  })

  describe('GET /push-subscriptions', () => {
    it("lists the member's own, oldest first, with the public key that browsers need", async () => {
      const made = [await subscribe(), await subscribe(), await subscribe()]
      await subscribe(browser(), colleague)
      const shown = { data: made, pushEnabled: true, vapidPublicKey: TEST_VAPID_PUBLIC_KEY }
      expect((await call('GET')).json).to.deep.equal(shown)
      await suite.database.dataSource.query('UPDATE member SET push_enabled = false')
      expect((await call('GET')).json).to.deep.equal({ ...shown, pushEnabled: false })
    })
  })

  describe('DELETE /push-subscriptions/:id', () => {
    it('removes the subscription, and answers 404 for it afterwards', async () => {
      const [one, other] = [await subscribe(), await subscribe()]
      const answer = await call('DELETE', `/${one.id}`)
      expect([answer.status, answer.text]).to.deep.equal([204, ''])
      expect(await subscriptions()).to.deep.equal([other])
      expect((await call('DELETE', `/${one.id}`)).status).to.equal(404)
    })

    it('answers 404 for an unknown subscription or one of another member, and removes nothing', async () => {
      const stranger = await createMember(suite.database.dataSource)
      const others = [await subscribe(browser(), colleague), await subscribe(browser(), stranger)]
      for (const id of [UNKNOWN_ID, 'garbled', ...others.map((subscription) => subscription.id)]) {
        const answer = await call('DELETE', `/${id}`)
        expect(answer.status, id).to.equal(404)
        expect(answer.json).to.include({ code: 'not_found' })
      }
      expect([...(await subscriptions(colleague)), ...(await subscriptions(stranger))]).to.deep.equal(others)
    })
  })

  describe('DELETE /push-subscriptions', () => {
    it('removes all subscriptions of the member, and no others', async () => {
      const stranger = await createMember(suite.database.dataSource)
      const body = browser()
      const others = [await subscribe(body, colleague), await subscribe(body, stranger)]
      for (const own of [body, browser()]) await subscribe(own)
      const answer = await call('DELETE')
      expect([answer.status, answer.text]).to.deep.equal([204, ''])
      expect(await subscriptions()).to.deep.equal([])
      expect([...(await subscriptions(colleague)), ...(await subscriptions(stranger))]).to.deep.equal(others)
    })
  })

  it('are separate from those of a member with the same id in another organisation', async () => {
    const { dataSource } = suite.database
    const { organisationId } = await createMember(dataSource)
    const { memberId } = member
    await dataSource.query(
      `INSERT INTO member SELECT $1, id, name, email, full_access, push_enabled, permissions
         FROM member WHERE organisation_id = $2 AND id = $3`,
      [organisationId, member.organisationId, memberId],
    )
    const target = { id: newId(), memberId, endpoint: 'https://push.example.com/', ...browser().keys }
    await upsertPushSubscription(dataSource, { organisationId, ...target }, MAX)
    expect(await subscriptions()).to.deep.equal([])
    expect((await call('DELETE', `/${target.id}`)).status).to.equal(404)
    expect((await call('DELETE')).status).to.equal(204)
    expect(await targets({ ...member, organisationId })).to.deep.equal([target])
    expect(await targets()).to.deep.equal([])
  })

  describe('when notifications are sent', () => {
    it('can be found and deleted by id, in their organisation only', async () => {
      const { organisationId, memberId } = member
      const { dataSource } = suite.database
      const body = browser()
      const { id } = await subscribe(body)
      await deletePushSubscriptions(dataSource, { organisationId: 'org_other', id })
      expect(await findPushSubscription(dataSource, 'org_other', id)).to.equal(null)
      expect(await findPushSubscription(dataSource, organisationId, id)).to.deep.equal({
        id,
        memberId,
        endpoint: body.endpoint,
        ...body.keys,
      })
      await deletePushSubscriptions(dataSource, { organisationId, id })
      await deletePushSubscriptions(dataSource, { organisationId, id })
      expect(await findPushSubscription(dataSource, organisationId, id)).to.equal(null)
    })
  })
})

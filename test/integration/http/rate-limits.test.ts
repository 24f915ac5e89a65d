import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { createAuthRefusals } from '../../../src/http/auth/refusals.ts'
import { createCallerLookup, createKnownCredentials } from '../../../src/accounts/caller-lookup.ts'
import { createRateLimits, type RateLimitSettings } from '../../../src/http/limits/rate-limits.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import {
  type ApiResponse,
  type CallOptions,
  cookieOf,
  createTestApi,
  type TestApi,
} from '../../helpers/api/api.ts'
import { asOperator } from '../../helpers/api/operator.ts'
import { createTestDatabase, recording, useDatabase } from '../../helpers/database/database.ts'
import { eventually } from '../../helpers/eventually.ts'
import { createMember, type TestMember } from '../../helpers/database/factories.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'

const UNKNOWN_KEY = 'x'.repeat(40)
const event = { event: 'customer:created', data: { id: 'cus_1' } }
const NO_LIMITS = { management: 0, publish: 0, authFailures: 0, open: 0 }
const witnesses = { logger: silentLogger, metrics: createMetrics() }

describe('rate limits', () => {
  const database = useDatabase()
  let api: TestApi
  let member: TestMember

  beforeEach(async () => {
    member = await createMember(database.dataSource)
  })
  afterEach(() => api.close())

  async function start(limits: Partial<RateLimitSettings>, trustedProxies: string[] = []): Promise<void> {
    const rateLimits = createRateLimits({ ...NO_LIMITS, ...limits }, witnesses)
    api = await createTestApi(database.dataSource, { rateLimits, trustedProxies })
  }

  /** Starts, and returns the statements that look keys up from then on. */
  async function startRecording({ authFailures = 0, reservedLookups = 0, lookupMs = 0 }): Promise<string[]> {
    const statements: string[] = []
    const known = createKnownCredentials()
    const lookUp = createCallerLookup(recording(database.dataSource, statements), 0.001, known)
    const findCaller = (key: string) => delay(lookupMs).then(() => lookUp(key))
    const rateLimits = createRateLimits({ ...NO_LIMITS, authFailures }, witnesses)
    const limits = { limit: rateLimits.authentication, reservedLookups }
    const authRefusals = createAuthRefusals({ ...limits, known, ...witnesses })
    api = await createTestApi(database.dataSource, { rateLimits, findCaller, known, authRefusals })
    return statements
  }

  const path = (resource: string) => `/api/orgs/${member.organisationId}/${resource}`
  const list = (options: CallOptions = {}) =>
    api.call('GET', path('webhooks'), { apiKey: member.apiKey, ...options })
  const publish = (options: CallOptions = {}) =>
    api.call('POST', path('events'), { apiKey: member.apiKey, body: event, ...options })
  const stranger = (from?: string, apiKey = UNKNOWN_KEY) =>
    list({ apiKey, ...(from === undefined ? {} : { headers: { 'x-forwarded-for': from } }) })

  describe('of an API key', () => {
    it('are stated in each answer, and refuse requests beyond them', async () => {
      await start({ management: 3 })
      for (const left of [2, 1, 0]) {
        const answer = await list()
        expect(answer.status).to.equal(200)
        expectHeaders(answer, 'management', { quota: 3, window: 10, left })
      }
      const refused = await list()
      expectRefusal(refused, 10)
      expectHeaders(refused, 'management', { quota: 3, window: 10, left: 0 })
      expect(refused.json).to.have.property('detail').that.includes('3 requests within 10 seconds')
    })

    it('count requests to every route that takes a key, refusals included', async () => {
      await start({ management: 5 })
      const answers = [
        await api.call('GET', '/api/event-keys', { apiKey: member.apiKey }),
        await api.call('GET', '/api/orgs/other/webhooks', { apiKey: member.apiKey }),
        await api.call('DELETE', path('webhooks/unknown'), { apiKey: member.apiKey }),
        await api.call('POST', path('webhooks'), { apiKey: member.apiKey, raw: '{' }),
        await api.call('POST', path('webhooks'), { apiKey: member.apiKey, body: {} }),
      ]
      expect(answers.map(({ status }) => status)).to.deep.equal([200, 404, 404, 400, 422])
      for (const [index, answer] of answers.entries())
        expectHeaders(answer, 'management', { quota: 5, window: 10, left: 4 - index })
      expectRefusal(await list(), 10)
    })

    it('refuse before the body is read', async () => {
      await start({ management: 1, publish: 1 })
      await Promise.all([list(), publish()])
      expectRefusal(await api.call('POST', path('webhooks'), { apiKey: member.apiKey, raw: '{' }), 10)
      expectRefusal(await publish({ raw: 'x'.repeat(400_000) }), 10)
    })

    it('admit exactly as many concurrent requests as they allow', async () => {
      await start({ management: 20 })
      const answers = await Promise.all(Array.from({ length: 50 }, () => list()))
      expect(answers.filter(({ status }) => status === 200)).to.have.lengthOf(20)
      expect(answers.filter(({ status }) => status === 429)).to.have.lengthOf(30)
    })

    it('apply to each key of a member separately', async () => {
      await start({ management: 1 })
      const [first, second] = [member, await createMember(database.dataSource, member)]
      expect((await list({ apiKey: first.apiKey })).status).to.equal(200)
      expectRefusal(await list({ apiKey: first.apiKey }), 10)
      expect((await list({ apiKey: second.apiKey })).status).to.equal(200)
    })

    it('do not apply to routes without a key', async () => {
      await start({ management: 1, publish: 1, authFailures: 1, open: 0 })
      for (let time = 0; time < 3; time += 1) {
        const answer = await api.call('GET', '/healthz')
        expect(answer.status).to.equal(200)
        expectNoHeaders(answer)
      }
      expect((await api.call('GET', '/nowhere')).status).to.equal(404)
    })

    it('do not limit publishing unless that is asked for', async () => {
      await start({ management: 1 })
      for (let time = 0; time < 3; time += 1) {
        const answer = await publish()
        expect(answer.status).to.equal(202)
        expectNoHeaders(answer)
      }
      expect((await list()).status).to.equal(200)
    })

    it('limit publishing separately', async () => {
      await start({ management: 2, publish: 2 })
      for (const left of [1, 0]) expectHeaders(await publish(), 'publish', { quota: 2, window: 10, left })
      const refused = await publish()
      expectRefusal(refused, 10)
      expectHeaders(refused, 'publish', { quota: 2, window: 10, left: 0 })
      expect(refused.json).to.have.property('detail').that.includes('2 events within 10 seconds')
      expectHeaders(await list(), 'management', { quota: 2, window: 10, left: 1 })
    })
  })

  describe('of failed authentications', () => {
    it('answer 429 in the place of 401 beyond them', async () => {
      await start({ authFailures: 2, open: 0 })
      for (let time = 0; time < 2; time += 1) {
        const answer = await stranger()
        expect(answer.status).to.equal(401)
        expectNoHeaders(answer)
      }
      const refused = await stranger()
      expectRefusal(refused, 60)
      expectHeaders(refused, 'authentication', { quota: 2, window: 60, left: 0 })
    })

    it('admit a recently valid key from an address beyond them', async () => {
      await start({ authFailures: 1, management: 3 })
      expect((await list()).status).to.equal(200)
      await stranger()
      expectRefusal(await stranger(), 60)
      const answer = await list()
      expect(answer.status).to.equal(200)
      expectHeaders(answer, 'management', { quota: 3, window: 10, left: 1 })
      expect((await publish()).status).to.equal(202)
    })

    it('admit a valid key that was not seen before from an address beyond them, and look up few others', async () => {
      const statements = await startRecording({ authFailures: 1, reservedLookups: 3 })
      await stranger()
      expectRefusal(await stranger(), 60)
      // One stranger uses up the reserve of a second; a member that tries again gets through.
      await eventually(async () => {
        const [, { status }] = await Promise.all([stranger(), list()])
        expect(status).to.equal(200)
      })
      statements.length = 0
      const startedAtMs = performance.now()
      const keys = Array.from({ length: 50 }, (_, index) => `${UNKNOWN_KEY}${index}`)
      for (const key of keys) expectRefusal(await stranger(undefined, key), 60)
      const seconds = Math.ceil((performance.now() - startedAtMs) / 1_000)
      expect(statements.length).to.be.at.most(3 * (seconds + 1))
      expect((await list()).status).to.equal(200)
    })

    it('admit valid sessions and operator keys that were not seen before beyond refused keys', async () => {
      await start({})
      const cookie = cookieOf(await api.call('POST', '/api/session', { apiKey: member.apiKey }))
      await api.close()
      await start({ authFailures: 1 })
      for (let time = 0; time < 20; time += 1) await stranger()
      expect((await api.call('GET', '/api/session', { headers: { cookie } })).status).to.equal(200)
      expect((await api.call('GET', '/api/operator/organisations', asOperator())).status).to.equal(200)
    })

    it('admit recently valid sessions and tickets', async () => {
      await start({ authFailures: 1 })
      const cookie = cookieOf(await api.call('POST', '/api/session', { apiKey: member.apiKey }))
      expect((await api.call('GET', '/api/session', { headers: { cookie } })).status).to.equal(200)
      const ticket = await api.call('POST', path('events/stream-tickets'), { apiKey: member.apiKey })
      expect((await stranger()).status).to.equal(401)
      expect((await api.call('GET', '/api/session', { headers: { cookie } })).status).to.equal(200)
      const made = (ticket.json as { ticket: string }).ticket
      expect((await api.call('GET', path(`events/stream?ticket=${made}`))).status).to.equal(200)
      expectRefusal(await api.call('GET', path(`events/stream?ticket=${made}`)), 60)
    })

    /** Sends ten requests at once, against a limit of two. */
    async function sendTen(keyOf: (index: number) => string) {
      const statements = await startRecording({ authFailures: 2, reservedLookups: 0, lookupMs: 50 })
      const answers = Array.from({ length: 10 }, (_, index) => stranger(undefined, keyOf(index)))
      return { statuses: (await Promise.all(answers)).map(({ status }) => status).sort(), statements }
    }

    for (const [keys, suffixOf] of Object.entries({ 'many keys': String, 'one key': () => '' }))
      it(`refuse beyond them before the database is asked, also ${keys} sent at once`, async () => {
        const { statuses, statements } = await sendTen((index) => `${UNKNOWN_KEY}${suffixOf(index)}`)
        expect(statuses).to.deep.equal([401, 401, ...Array.from({ length: 8 }, () => 429)])
        expect(statements).to.have.lengthOf(2)
      })

    it('admit a valid key that was not seen before, however often it is sent at once', async () => {
      expect(new Set((await sendTen(() => member.apiKey)).statuses)).to.deep.equal(new Set([200]))
    })

    it('look up a key that was revoked meanwhile once more, and then no more', async () => {
      const statements = await startRecording({ authFailures: 1, reservedLookups: 0 })
      expect((await list()).status).to.equal(200)
      await stranger()
      const revoke = 'UPDATE api_key SET revoked_at = now() WHERE member_id = $1'
      await database.dataSource.query(revoke, [member.memberId])
      statements.length = 0
      for (let time = 0; time < 3; time += 1) expectRefusal(await list(), 60)
      expect(statements).to.have.lengthOf(1)
    })

    it('do not reveal why a key is not valid', async () => {
      await start({ authFailures: 4, open: 0 })
      const [revoked, expired] = await Promise.all([
        keyWith('revoked_at = now()'),
        keyWith("expires_at = now() - interval '1 second'"),
      ])
      const keys = [UNKNOWN_KEY, 'short', revoked, expired]
      for (const status of [401, 429]) {
        const answers: ApiResponse[] = []
        for (const key of keys) answers.push(await stranger(undefined, key))
        expect(answers.map((answer) => answer.status)).to.deep.equal(keys.map(() => status))
        expect(new Set(answers.map(({ text }) => text.replace(/in \d+ s/, 'soon'))).size).to.equal(1)
        const names = answers.map(({ headers }) => [...headers.keys()].sort().join())
        expect(new Set(names).size).to.equal(1)
      }
    })

    it('use the address that the proxy saw, where there is one', async () => {
      await start({ authFailures: 1, open: 0 }, ['127.0.0.0/8'])
      expect((await stranger('203.0.113.1')).status).to.equal(401)
      expectRefusal(await stranger('203.0.113.1'), 60)
      // What the sender itself put in front does not count.
      expectRefusal(await stranger('198.51.100.9, 203.0.113.1'), 60)
      await expectOneAnswered(
        401,
        () => stranger('203.0.113.2'),
        () => stranger('203.0.113.3'),
      )
    })

    it('count the /64 of an IPv6 address as one sender', async () => {
      await start({ authFailures: 1, open: 0 }, ['127.0.0.0/8'])
      expect((await stranger('2001:db8:1:2::1')).status).to.equal(401)
      expectRefusal(await stranger('2001:db8:1:2:ffff::2'), 60)
      await expectOneAnswered(
        401,
        () => stranger('2001:db8:1:3::1'),
        () => stranger('2001:db8:1:4::1'),
      )
    })

    it('do not count requests that the database could not answer for', async () => {
      await start({ authFailures: 1, open: 0 })
      const away = await createTestDatabase()
      const rateLimits = createRateLimits({ ...NO_LIMITS, authFailures: 1 }, witnesses)
      const cutOff = await createTestApi(away.dataSource, { rateLimits })
      await away.drop()
      for (let time = 0; time < 3; time += 1)
        expect((await cutOff.call('GET', path('webhooks'), { apiKey: UNKNOWN_KEY })).status).to.equal(503)
      await cutOff.close()
    })
  })

  describe('of open routes, per address', () => {
    it('count documents, pages, sign-in and unknown paths together, and no probes', async () => {
      await start({ open: 5 }, ['127.0.0.0/8'])
      const from = (address: string) => ({ headers: { 'x-forwarded-for': address } })
      const ask = (method: string, at: string, address = '203.0.113.1') => api.call(method, at, from(address))
      const statuses: number[] = []
      for (const at of ['/healthz', '/readyz', '/openapi.json', '/docs', '/developer', '/nowhere'])
        statuses.push((await ask('GET', at)).status)
      expect(statuses).to.deep.equal([200, 200, 200, 200, 200, 404])
      expect((await ask('POST', '/api/session')).status).to.equal(401)
      for (const [method, at] of [
        ['GET', '/openapi.json'],
        ['GET', '/developer'],
        ['GET', '/nowhere'],
        ['DELETE', '/healthz'],
        ['POST', '/api/session'],
      ] as const)
        expectRefusal(await ask(method, at), 60)
      for (const probe of ['/healthz', '/readyz']) expect((await ask('GET', probe)).status).to.equal(200)
      const askFrom = (address: string) => () => ask('GET', '/docs', address)
      await expectOneAnswered(200, askFrom('203.0.113.2'), askFrom('203.0.113.3'))
    })

    it('do not count requests with a key', async () => {
      await start({ open: 1 })
      await api.call('GET', '/docs')
      expectRefusal(await api.call('GET', '/docs'), 60)
      for (let time = 0; time < 3; time += 1) expect((await list()).status).to.equal(200)
    })
  })

  /** One of two: an address shares its count with another once in 65,536 times. */
  async function expectOneAnswered(
    status: number,
    ...requests: (() => Promise<{ status: number }>)[]
  ): Promise<void> {
    const answers = await Promise.all(requests.map((request) => request()))
    expect(answers.map((answer) => answer.status)).to.include(status)
  }

  async function keyWith(change: string): Promise<string> {
    const { memberId, apiKey } = await createMember(database.dataSource)
    await database.dataSource.query(`UPDATE api_key SET ${change} WHERE member_id = $1`, [memberId])
    return apiKey
  }
})

type Stated = { quota: number; window: number; left: number }

/** The seconds are exact to the clock of the machine; `test/unit/http/limits/rate-limits.test.ts` stops it. */
function expectHeaders({ headers }: ApiResponse, name: string, { quota, window, left }: Stated): void {
  expect(headers.get('ratelimit-policy')).to.equal(`"${name}";q=${quota};w=${window}`)
  const [, stated, seconds] = /^(.*);t=(\d+)$/.exec(headers.get('ratelimit') ?? '') ?? []
  expect(stated).to.equal(`"${name}";r=${left}`)
  expect(Number(seconds)).to.be.within(1, window)
}

function expectNoHeaders({ headers }: ApiResponse): void {
  expect([...headers.keys()].filter((name) => /ratelimit|retry/.test(name))).to.be.empty
}

function expectRefusal(answer: ApiResponse, window: number): void {
  expect(answer.status, answer.text).to.equal(429)
  expect(answer.headers.get('content-type')).to.match(/^application\/problem\+json\b/)
  expect(answer.json).to.include({
    type: 'urn:posthorn:problem:rate_limited',
    status: 429,
    code: 'rate_limited',
  })
  const seconds = answer.headers.get('retry-after') ?? ''
  expect(Number(seconds)).to.be.within(1, window)
  expect(answer.headers.get('ratelimit')?.endsWith(`;r=0;t=${seconds}`)).to.equal(true)
}

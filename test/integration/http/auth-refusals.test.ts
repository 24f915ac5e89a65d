import { expect } from 'chai'
import { Registry } from 'prom-client'
import { createAuthRefusals } from '../../../src/http/auth/refusals.ts'
import { createKnownCredentials } from '../../../src/accounts/caller-lookup.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { createTestApi, type TestApi } from '../../helpers/api/api.ts'
import { parseExposition } from '../../helpers/metrics/exposition.ts'
import { createMember, replaceKeyValue, type TestMember } from '../../helpers/database/factories.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'
import { useDatabase } from '../../helpers/database/database.ts'

const DEMO_KEY = 'phk_demo_full_access_0001'
const UNKNOWN_KEY = 'phk_3kT9vWq2LxYbN8sRzC5dHjM4aFgP7u'

describe('keys, sessions and tickets that are refused', () => {
  const database = useDatabase()
  let api: TestApi
  let registry: Registry
  let member: TestMember
  const lines: Record<string, unknown>[] = []

  async function start(acceptsDemoKeys: boolean): Promise<void> {
    registry = new Registry()
    const metrics = createMetrics(registry)
    const known = createKnownCredentials()
    const logger = { ...silentLogger, warn: (fields: object) => void lines.push({ ...fields }) }
    const authRefusals = createAuthRefusals({ limit: null, known, logger, metrics })
    api = await createTestApi(database.dataSource, { metrics, known, authRefusals, acceptsDemoKeys })
  }

  beforeEach(async () => {
    lines.length = 0
    member = await createMember(database.dataSource)
  })
  afterEach(() => api.close())

  const list = (apiKey: string | undefined, headers = {}) =>
    api.call('GET', `/api/orgs/${member.organisationId}/webhooks`, {
      ...(apiKey === undefined ? {} : { apiKey }),
      headers: { 'x-request-id': 'req-7', ...headers },
    })
  const signIn = (apiKey: string) => api.call('POST', '/api/session', { apiKey })
  const counted = async (purpose: string, reason: string) =>
    parseExposition(await registry.metrics()).valueOf('posthorn_auth_refused_total', { purpose, reason })

  it('are logged with the address of their sender and a reason, and counted', async () => {
    await start(true)
    const { organisationId } = member
    await list(undefined)
    await list('short')
    await list(UNKNOWN_KEY)
    await list(undefined, { cookie: `posthorn_session=${'A'.repeat(43)}` })
    await api.call('GET', `/api/orgs/${organisationId}/events/stream?ticket=none`)
    await signIn(UNKNOWN_KEY)
    expect(lines.map(({ event, reason, operationId }) => [event, reason, operationId])).to.deep.equal([
      ['auth.refused', 'missing', 'listWebhooks'],
      ['auth.refused', 'malformed', 'listWebhooks'],
      ['auth.refused', 'unknown', 'listWebhooks'],
      ['auth.refused', 'session', 'listWebhooks'],
      ['auth.refused', 'ticket', 'streamEvents'],
      ['auth.refused', 'unknown', 'signIn'],
    ])
    expect(lines[0]).to.include({ address: '127.0.0.1', requestId: 'req-7' })
    expect(JSON.stringify(lines)).to.not.include(UNKNOWN_KEY).and.not.include('A'.repeat(43))
    for (const reason of ['missing', 'malformed', 'unknown', 'session', 'ticket'])
      expect(await counted('request', reason), reason).to.equal(1)
    expect(await counted('sign_in', 'unknown')).to.equal(1)
    expect(await counted('sign_in', 'missing')).to.equal(0)
  })

  it('do not include members who lack a permission', async () => {
    await start(true)
    const reader = await createMember(database.dataSource, { permissions: [] })
    expect((await list(member.apiKey)).status).to.equal(200)
    expect((await list(reader.apiKey)).status).to.equal(404)
    expect(lines).to.deep.equal([])
  })

  describe('with the length of those of the demo organisation', () => {
    beforeEach(() => replaceKeyValue(database.dataSource, member, DEMO_KEY))
    afterEach(() => database.dataSource.query('DELETE FROM api_key WHERE member_id = $1', [member.memberId]))

    it('are accepted by a process that listens on loopback', async () => {
      await start(true)
      expect((await list(DEMO_KEY)).status).to.equal(200)
      expect((await signIn(DEMO_KEY)).status).to.equal(200)
    })

    it('are refused elsewhere, which is explained in the log once', async () => {
      await start(false)
      const refused = await list(DEMO_KEY)
      expect(refused.status).to.equal(401)
      expect((await signIn(DEMO_KEY)).status).to.equal(401)
      expect(refused.text).to.equal((await list(UNKNOWN_KEY)).text)
      expect(lines.map(({ event, reason }) => [event, reason])).to.deep.equal([
        ['auth.refused', 'short'],
        ['auth.short_keys_refused', undefined],
        ['auth.refused', 'short'],
        ['auth.refused', 'unknown'],
      ])
    })
  })
})

describe('known credentials', () => {
  const hash = (name: number) => Buffer.alloc(32, name)

  it('are bounded, and the least recently used is evicted', () => {
    const known = createKnownCredentials(2)
    known.add(hash(1))
    known.add(hash(2))
    known.add(hash(1))
    known.add(hash(3))
    expect([1, 2, 3].map((name) => known.has(hash(name)))).to.deep.equal([true, false, true])
    known.delete(hash(1))
    expect(known.has(hash(1))).to.equal(false)
  })
})

import { expect } from 'chai'
import { Registry } from 'prom-client'
import { createRateLimits } from '../../../src/http/limits/rate-limits.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { cookieOf, createTestApi, type TestApi, useApi } from '../../helpers/api/api.ts'
import {
  asOperator,
  createPortalLink,
  openPortalLink,
  portalLinkOf,
  SAME_ORIGIN,
  tokenOf,
} from '../../helpers/api/operator.ts'
import { createMember, type TestMember } from '../../helpers/database/factories.ts'
import { openTransaction, untilWaitingForLock } from '../../helpers/database/database.ts'
import { parseExposition } from '../../helpers/metrics/exposition.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'

describe('portal links', () => {
  const suite = useApi()
  let member: TestMember
  beforeEach(async () => {
    member = await createMember(suite.database.dataSource)
  })

  const create = (body: object = {}, of = member, on: TestApi = suite.api) => createPortalLink(on, of, body)
  const open = (token: string, on: TestApi = suite.api) => openPortalLink(on, token)
  const ask = (method: string, path: string, cookie: string, options: { body?: unknown } = {}) =>
    suite.api.call(method, path, { headers: { cookie, ...SAME_ORIGIN }, ...options })
  const query = <Row>(sql: string, parameters: unknown[] = []) =>
    suite.database.dataSource.query<Row[]>(sql, parameters)
  async function signIn(who = member): Promise<string> {
    return cookieOf(await open(tokenOf(await create({}, who))))
  }

  it('have their token in the fragment, and expire when the operator says', async () => {
    const created = await create({ path: '/webhooks', expiresInSeconds: 60 })
    expect(created.status).to.equal(201)
    const { url, expiresAt } = portalLinkOf(created)
    expect(url).to.match(new RegExp(`^${suite.api.url}/developer#portal=[\\w-]{43}$`))
    expect(Date.parse(expiresAt) - Date.now()).to.be.within(30_000, 61_000)
  })

  it('lead to the configured address of the service', async () => {
    const publicUrl = 'https://hooks.example.com'
    const api = await createTestApi(suite.database.dataSource, { publicUrl })
    expect(portalLinkOf(await create({}, member, api)).url).to.match(
      /^https:\/\/hooks\.example\.com\/developer#/,
    )
    await api.close()
  })

  it('open a session of their member, once', async () => {
    const token = tokenOf(await create())
    const opened = await open(token)
    expect([opened.status, opened.json]).to.deep.equal([200, { address: '/developer' }])
    expect(opened.headers.get('set-cookie')).to.match(
      /^posthorn_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=4\d{4}$/,
    )
    const { json } = await ask('GET', '/api/session', cookieOf(opened))
    expect(json).to.have.nested.property('member.id', member.memberId)
    expect(json).to.have.nested.property('organisation.id', member.organisationId)
    const again = await open(token)
    expect([again.status, again.headers.get('set-cookie')]).to.deep.equal([401, null])
    expect(again.json).to.include({ code: 'invalid_portal_link' })
  })

  it('open one session when many open them at the same time', async () => {
    const token = tokenOf(await create())
    const answers = await Promise.all(Array.from({ length: 12 }, () => open(token)))
    expect(answers.map(({ status }) => status).sort()).to.deep.equal([200, ...Array<number>(11).fill(401)])
    const sessions = await query('SELECT 1 FROM session WHERE member_id = $1', [member.memberId])
    expect(sessions).to.have.length(1)
  })

  it('are refused alike when they are expired, used, of a deleted member, or never were', async () => {
    const expired = tokenOf(await create())
    await query(`UPDATE portal_link SET expires_at = now() - interval '1 second'`)
    const used = tokenOf(await create())
    await open(used)
    const gone = await createMember(suite.database.dataSource, { organisationId: member.organisationId })
    const ofNobody = tokenOf(await create({}, gone))
    await query('DELETE FROM member WHERE id = $1', [gone.memberId])
    const answers = await Promise.all(
      [expired, used, ofNobody, 'x'.repeat(43), '', 'ü'].map((token) => open(token)),
    )
    for (const { status, text } of answers) expect([status, text]).to.deep.equal([401, answers[0]?.text])
  })

  it('are refused while their member is being deleted', async () => {
    const token = tokenOf(await create())
    const runner = await openTransaction(suite.database.dataSource)
    await runner.query('DELETE FROM member WHERE id = $1', [member.memberId])
    const [opening, creating] = [open(token), create()]
    await untilWaitingForLock(suite.database.dataSource, 2)
    await runner.commitTransaction()
    await runner.release()
    expect([(await opening).status, (await creating).status]).to.deep.equal([401, 404])
  })

  it('are stored as a hash only, and appear in no audit entry', async () => {
    const token = tokenOf(await create())
    const [row] = await query<{ text: string }>('SELECT portal_link::text AS text FROM portal_link')
    expect(row?.text).to.not.include(token).and.not.include(Buffer.from(token).toString('hex'))
    const opened = await open(token)
    const session = cookieOf(opened).split('=')[1] ?? ''
    const entries = await query<{ text: string }>('SELECT audit_entry::text AS text FROM audit_entry')
    for (const { text } of entries) expect(text).to.not.include(token).and.not.include(session)
  })

  it('leave a trail: which operator made them, and the session that they opened', async () => {
    const cookie = await signIn()
    await ask('DELETE', '/api/session', cookie)
    const audit = await suite.api.call('GET', `/api/orgs/${member.organisationId}/audit`, {
      apiKey: member.apiKey,
    })
    const { data } = audit.json as { data: Record<string, unknown>[] }
    const [ended, opened, created] = data
    expect(created).to.include({ action: 'portal_link.created', memberId: null, apiKeyId: null })
    expect(created).to.have.property('details').that.includes({
      actor: 'operator:portal',
      memberId: member.memberId,
      path: '/',
    })
    expect(opened).to.include({ action: 'session.opened', memberId: member.memberId, apiKeyId: null })
    expect(opened).to.have.property('details').that.deep.equals({ by: 'portal_link' })
    expect(ended).to.include({ action: 'session.ended', memberId: member.memberId })
    expect((await ask('GET', '/api/session', cookie)).status).to.equal(401)
  })

  it('are removed by age when others are made', async () => {
    for (let index = 0; index < 3; index++) await create()
    await query(`UPDATE portal_link SET expires_at = now() - interval '1 second'`)
    await create()
    expect(await query('SELECT 1 FROM portal_link')).to.have.length(1)
  })

  it('are opened from pages of this very origin only', async () => {
    const token = tokenOf(await create())
    for (const headers of [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { origin: 'https://evil.example' },
      {},
    ]) {
      const { status, json } = await openPortalLink(suite.api, token, headers)
      expect([status, (json as { code: string }).code]).to.deep.equal([403, 'cross_site'])
    }
    expect((await open(token)).status, 'and are not used up by that').to.equal(200)
  })

  it('count guesses against the address, log no token, and still open links that this process made', async () => {
    const registry = new Registry()
    const metrics = createMetrics(registry)
    const lines: object[] = []
    const logger = { ...silentLogger, warn: (fields: object) => void lines.push(fields) }
    const rateLimits = createRateLimits({ management: 0, publish: 0, authFailures: 3, open: 0 }, { metrics })
    const api = await createTestApi(suite.database.dataSource, { rateLimits, logger, metrics })
    const token = tokenOf(await create({}, member, api))
    const guess = 'guess'.repeat(8)
    const statuses = []
    for (let index = 0; index < 4; index++) statuses.push((await open(`${guess}${index}`, api)).status)
    expect(statuses).to.deep.equal([401, 401, 401, 429])
    expect(lines, 'the last is checked beyond the limit').to.have.length(4)
    expect(lines[0]).to.include({
      event: 'auth.refused',
      reason: 'portal_link',
      operationId: 'openPortalLink',
    })
    expect(JSON.stringify(lines)).to.not.include(guess)
    const counted = parseExposition(await registry.metrics())
    const labels = { purpose: 'sign_in', reason: 'portal_link' }
    expect(counted.valueOf('posthorn_auth_refused_total', labels)).to.equal(4)
    expect((await open(token, api)).status).to.equal(200)
    await api.close()
  })
})

describe('sessions that portal links open', () => {
  const suite = useApi()
  const query = <Row>(sql: string, parameters: unknown[] = []) =>
    suite.database.dataSource.query<Row[]>(sql, parameters)

  async function signIn(member: TestMember, on: TestApi = suite.api): Promise<string> {
    return cookieOf(await openPortalLink(on, tokenOf(await createPortalLink(on, member))))
  }
  const ask = (method: string, path: string, cookie: string, headers: Record<string, string> = SAME_ORIGIN) =>
    suite.api.call(method, path, { headers: { cookie, ...headers } })

  it('have the rights that their member has at each request', async () => {
    const member = await createMember(suite.database.dataSource, { permissions: ['webhook:read'] })
    const { organisationId, memberId } = member
    const cookie = await signIn(member)
    const webhooks = `/api/orgs/${organisationId}/webhooks`
    expect((await ask('GET', webhooks, cookie)).status).to.equal(200)
    await query(`UPDATE member SET permissions = '{}' WHERE id = $1`, [memberId])
    expect((await ask('GET', webhooks, cookie)).status).to.equal(403)
    const stranger = await createMember(suite.database.dataSource)
    expect((await ask('GET', `/api/orgs/${stranger.organisationId}/webhooks`, cookie)).status).to.equal(404)
  })

  it('end with the deletion of their member, at once', async () => {
    const member = await createMember(suite.database.dataSource)
    const cookie = await signIn(member)
    await query('DELETE FROM member WHERE id = $1', [member.memberId])
    expect((await ask('GET', '/api/session', cookie)).status).to.equal(401)
  })

  it('get no ticket for an event stream, which needs an API key', async () => {
    const member = await createMember(suite.database.dataSource)
    const cookie = await signIn(member)
    const path = `/api/orgs/${member.organisationId}/events/stream-tickets`
    const { status, json } = await ask('POST', path, cookie)
    expect(status).to.equal(403)
    expect(json).to.include({ code: 'needs_api_key' })
  })

  it('outlive the keys of their member, and expire after 12 hours', async () => {
    const member = await createMember(suite.database.dataSource)
    const cookie = await signIn(member)
    await query('UPDATE api_key SET revoked_at = now() WHERE member_id = $1', [member.memberId])
    expect((await ask('GET', '/api/session', cookie)).status).to.equal(200)
    const [row] = await query<{ hours: number }>(
      `SELECT round(extract(epoch FROM expires_at - now()) / 3600)::int AS hours FROM session WHERE member_id = $1`,
      [member.memberId],
    )
    expect(row).to.deep.equal({ hours: 12 })
    await query(`UPDATE session SET expires_at = now() - interval '1 second'`)
    expect((await ask('GET', '/api/session', cookie)).status).to.equal(401)
  })

  it('are ended by an operator, with the links that are not opened yet and no one else', async () => {
    const member = await createMember(suite.database.dataSource)
    const { organisationId, memberId } = member
    const colleague = await createMember(suite.database.dataSource, { organisationId })
    const ofMember = `/api/operator/organisations/${organisationId}/members/${memberId}`
    const [cookie, other, theirs] = [await signIn(member), await signIn(member), await signIn(colleague)]
    const ofKey = cookieOf(await suite.api.call('POST', '/api/session', { apiKey: member.apiKey }))
    const link = await createPortalLink(suite.api, member)
    const ended = await suite.api.call('DELETE', `${ofMember}/sessions`, asOperator('manager'))
    expect(ended.status, ended.text).to.equal(204)
    for (const one of [cookie, other, ofKey])
      expect((await ask('GET', '/api/session', one)).status).to.equal(401)
    expect((await openPortalLink(suite.api, tokenOf(link))).status).to.equal(401)
    expect((await ask('GET', '/api/session', theirs)).status).to.equal(200)
    const [entry] = await query<object>(
      `SELECT member_id AS "memberId", details FROM audit_entry
        WHERE organisation_id = $1 AND action = 'sessions.ended'`,
      [organisationId],
    )
    const details = { actor: 'operator:manager', memberId, count: 3 }
    expect(entry).to.deep.equal({ memberId: null, details })
    for (const path of [`${ofMember}x/sessions`, '/api/operator/organisations/org_none/members/m/sessions'])
      expect((await suite.api.call('DELETE', path, asOperator('manager'))).status).to.equal(404)
  })

  it('are limited to twenty per member; the oldest is evicted', async () => {
    const member = await createMember(suite.database.dataSource)
    const first = await signIn(member)
    for (let index = 0; index < 20; index++) await signIn(member)
    expect((await ask('GET', '/api/session', first)).status).to.equal(401)
    expect(await query('SELECT 1 FROM session WHERE member_id = $1', [member.memberId])).to.have.length(20)
  })

  it('count against the limits of their member, together', async () => {
    const member = await createMember(suite.database.dataSource)
    const other = await createMember(suite.database.dataSource, { organisationId: member.organisationId })
    const observers = { metrics: createMetrics() }
    const limits = { management: 3, publish: 0, authFailures: 0, open: 0 }
    const api = await createTestApi(suite.database.dataSource, {
      rateLimits: createRateLimits(limits, observers),
    })
    const cookies = [await signIn(member, api), await signIn(member, api)]
    const statuses = []
    for (const cookie of [...cookies, ...cookies])
      statuses.push((await api.call('GET', '/api/session', { headers: { cookie } })).status)
    expect(statuses).to.deep.equal([200, 200, 200, 429])
    const cookie = await signIn(other, api)
    expect((await api.call('GET', '/api/session', { headers: { cookie } })).status).to.equal(200)
    await api.close()
  })
})

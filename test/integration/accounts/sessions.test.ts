import { expect } from 'chai'
import { createCallerLookup } from '../../../src/accounts/caller-lookup.ts'
import { createRateLimits } from '../../../src/http/limits/rate-limits.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { type ApiResponse, cookieOf, createTestApi, type TestApi, useApi } from '../../helpers/api/api.ts'
import {
  createMember,
  createWebhookRow,
  publishRow,
  replaceKeyValue,
  type TestMember,
} from '../../helpers/database/factories.ts'
import { sendRaw } from '../../helpers/api/raw-request.ts'

const SAME_ORIGIN = { 'sec-fetch-site': 'same-origin' }

describe('sessions of the developer area', () => {
  const suite = useApi()
  let member: TestMember
  beforeEach(async () => {
    member = await createMember(suite.database.dataSource)
  })

  async function signIn(on: TestApi = suite.api, { apiKey } = member): Promise<string> {
    const answer = await on.call('POST', '/api/session', { apiKey })
    expect(answer.status).to.equal(200)
    return cookieOf(answer)
  }
  const ask = (method: string, path: string, cookie: string, headers = {}, on = suite.api) =>
    on.call(method, path, { headers: { cookie, ...headers } })
  const webhooks = () => `/api/orgs/${member.organisationId}/webhooks`
  const query = (sql: string, parameters: unknown[] = []) =>
    suite.database.dataSource.query<Record<string, unknown>[]>(sql, parameters)

  const refusal = ({ status, json }: ApiResponse) => [status, (json as { code?: string } | null)?.code]

  it('stand for their key: the same organisation, the same permissions', async () => {
    const reader = await createMember(suite.database.dataSource, {
      organisationId: member.organisationId,
      permissions: ['webhook:read'],
    })
    const cookie = await signIn(suite.api, reader)
    expect((await ask('GET', webhooks(), cookie)).status).to.equal(200)
    const { status, json } = await suite.api.call('POST', webhooks(), {
      headers: { cookie, ...SAME_ORIGIN },
      body: { url: 'https://hooks.customer.com/', subscribedEventKeys: ['invoice:paid'], enabled: true },
    })
    expect(status).to.equal(403)
    expect(json).to.have.property('missingPermissions').that.deep.equals(['webhook:manage'])
    const stranger = await createMember(suite.database.dataSource)
    expect((await ask('GET', `/api/orgs/${stranger.organisationId}/webhooks`, cookie)).status).to.equal(404)
  })

  it('are kept in a cookie that no script reads and no other site sends', async () => {
    const { headers } = await suite.api.call('POST', '/api/session', { apiKey: member.apiKey })
    expect(headers.get('set-cookie')).to.match(
      /^posthorn_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=\d+$/,
    )
  })

  it('are bound to the host and sent over TLS only, where there is TLS', async () => {
    const secured = await createTestApi(suite.database.dataSource, { publicUrl: 'https://hooks.example.com' })
    const { headers } = await secured.call('POST', '/api/session', { apiKey: member.apiKey })
    expect(headers.get('set-cookie')).to.match(
      /^__Host-posthorn_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Secure; Max-Age=\d+$/,
    )
    const plain = await signIn()
    expect((await ask('GET', webhooks(), plain, {}, secured)).status, 'a cookie set in clear').to.equal(401)
    await secured.close()
  })

  it('accept X-Forwarded-Proto from a trusted proxy only', async () => {
    const headers = { 'x-forwarded-proto': 'https' }
    const nameOn = async (on: TestApi) => {
      const answer = await on.call('POST', '/api/session', { apiKey: member.apiKey, headers })
      return answer.headers.get('set-cookie')?.split('=')[0]
    }
    const behindProxy = await createTestApi(suite.database.dataSource, { trustedProxies: ['127.0.0.1/32'] })
    expect(await nameOn(behindProxy)).to.equal('__Host-posthorn_session')
    expect(await nameOn(suite.api)).to.equal('posthorn_session')
    await behindProxy.close()
  })

  it('are refused over plain HTTP from another machine', async () => {
    const headers = { host: 'hooks.example.com', 'x-api-key': member.apiKey }
    const answer = await sendRaw(suite.api.url, { method: 'POST', path: '/api/session', headers })
    expect(answer.status).to.equal(403)
    expect(answer.text).to.include('needs_tls')
    expect(answer.headers).to.not.have.property('set-cookie')
  })

  it('are stored as a hash only', async () => {
    const token = (await signIn()).split('=')[1] ?? ''
    const [row] = await query('SELECT session::text AS text FROM session')
    expect(row?.['text']).to.not.include(token).and.not.include(Buffer.from(token).toString('hex'))
  })

  for (const [origin, headers] of Object.entries({
    'another site': { 'sec-fetch-site': 'cross-site' },
    'a sister site': { 'sec-fetch-site': 'same-site' },
    'no site at all': { 'sec-fetch-site': 'none' },
    'another origin': { origin: 'https://evil.example' },
    'an origin that is none': { origin: 'null' },
    'nowhere, as far as one can tell': {},
  }))
    it(`change nothing for a request from ${origin}`, async () => {
      const { organisationId } = member
      const { id } = await createWebhookRow(suite.database.dataSource, {
        organisationId,
        url: 'https://a.example/',
      })
      const cookie = await signIn()
      for (const [method, path] of [
        ['DELETE', `${webhooks()}/${id}`],
        ['POST', `${webhooks()}/${id}/test`],
        ['DELETE', '/api/session'],
      ] as const)
        expect(refusal(await ask(method, path, cookie, headers))).to.deep.equal([403, 'cross_site'])
      expect((await ask('GET', `${webhooks()}/${id}`, cookie)).status).to.equal(200)
    })

  it('read for pages of this origin and for a typed address, and for no page of another origin', async () => {
    const cookie = await signIn()
    for (const site of ['cross-site', 'same-site'])
      expect(refusal(await ask('GET', webhooks(), cookie, { 'sec-fetch-site': site })), site).to.deep.equal([
        403,
        'cross_site',
      ])
    for (const site of ['same-origin', 'none'])
      expect((await ask('GET', webhooks(), cookie, { 'sec-fetch-site': site })).status, site).to.equal(200)
    const options = { apiKey: member.apiKey, headers: { cookie, 'sec-fetch-site': 'same-site' } }
    expect((await suite.api.call('GET', webhooks(), options)).status, 'with a key').to.equal(200)
  })

  it('read what the audit trail records for pages of this origin only', async () => {
    const { organisationId } = member
    const { dataSource } = suite.database
    const { id } = await createWebhookRow(dataSource, { organisationId, url: 'https://a.example/' })
    const [delivery] = await publishRow(dataSource, organisationId)
    const paths = [`${webhooks()}/${id}/signing-secret`]
    paths.push(`${webhooks()}/${id}/deliveries/${delivery!.deliveryId}/request`)
    const cookie = await signIn()
    const reads = () =>
      query("SELECT 1 FROM audit_entry WHERE organisation_id = $1 AND action LIKE '%\\_read'", [
        organisationId,
      ])
    for (const path of paths)
      for (const headers of [{ 'sec-fetch-site': 'same-site' }, { 'sec-fetch-site': 'none' }, {}])
        expect(refusal(await ask('GET', path, cookie, headers)), path).to.deep.equal([403, 'cross_site'])
    expect(await reads()).to.deep.equal([])
    for (const path of paths) expect((await ask('GET', path, cookie, SAME_ORIGIN)).status, path).to.equal(200)
    expect(await reads()).to.have.length(2)
    for (const path of paths)
      expect((await suite.api.call('GET', path, { apiKey: member.apiKey })).status, 'with a key').to.equal(
        200,
      )
  })

  it('are replaced by the next sign-in of the same browser, which ends them', async () => {
    const colleague = await createMember(suite.database.dataSource, { organisationId: member.organisationId })
    const cookie = await signIn()
    const renewed = cookieOf(
      await suite.api.call('POST', '/api/session', { apiKey: colleague.apiKey, headers: { cookie } }),
    )
    expect((await ask('GET', '/api/session', cookie)).status).to.equal(401)
    expect((await ask('GET', '/api/session', renewed)).status).to.equal(200)
    const ended = await query(
      `SELECT member_id AS "memberId", details FROM audit_entry
        WHERE organisation_id = $1 AND action = 'session.ended'`,
      [member.organisationId],
    )
    expect(ended).to.deep.equal([{ memberId: member.memberId, details: { by: 'sign_in' } }])
  })

  it('act for a request from the very same origin', async () => {
    const { organisationId } = member
    const cookie = await signIn()
    for (const headers of [SAME_ORIGIN, { origin: suite.api.url }]) {
      const { id } = await createWebhookRow(suite.database.dataSource, {
        organisationId,
        url: 'https://a.example/',
      })
      expect((await ask('DELETE', `${webhooks()}/${id}`, cookie, headers)).status).to.equal(204)
    }
  })

  it('end with the revocation of their key, and with its expiry, at the next request', async () => {
    for (const change of ['revoked_at = now()', "expires_at = now() - interval '1 second'"]) {
      const other = await createMember(suite.database.dataSource)
      const cookie = await signIn(suite.api, other)
      await query(`UPDATE api_key SET ${change} WHERE member_id = $1`, [other.memberId])
      expect(refusal(await ask('GET', '/api/session', cookie))).to.deep.equal([401, 'unauthenticated'])
    }
  })

  it('end when their key gets another value under the same name, and begin anew with that value', async () => {
    const { organisationId, memberId } = member
    const cookie = await signIn()
    const apiKey = await replaceKeyValue(suite.database.dataSource, member)
    expect(refusal(await ask('GET', webhooks(), cookie))).to.deep.equal([401, 'unauthenticated'])
    const renewed = await signIn(suite.api, { organisationId, memberId, apiKey })
    expect((await ask('GET', webhooks(), renewed)).status).to.equal(200)
  })

  it('are not opened with a value that was just replaced, also where the process still remembers it', async () => {
    const api = await createTestApi(suite.database.dataSource, {
      findCaller: createCallerLookup(suite.database.dataSource, 60_000),
    })
    await signIn(api)
    await replaceKeyValue(suite.database.dataSource, member)
    const answer = await api.call('POST', '/api/session', { apiKey: member.apiKey })
    expect(refusal(answer)).to.deep.equal([401, 'unauthenticated'])
    expect(answer.headers.get('set-cookie')).to.equal(null)
    await api.close()
  })

  it('are refused while their member is being removed, also where the process still remembers it', async () => {
    const { dataSource } = suite.database
    const api = await createTestApi(dataSource, { findCaller: createCallerLookup(dataSource, 60_000) })
    const read = () => api.call('GET', '/api/session', { apiKey: member.apiKey })
    expect((await read()).status).to.equal(200)
    await dataSource.query('DELETE FROM member WHERE organisation_id = $1 AND id = $2', [
      member.organisationId,
      member.memberId,
    ])
    expect(refusal(await read())).to.deep.equal([401, 'unauthenticated'])
    await api.close()
  })

  it('are opened without waiting for expired ones, of which ten are cleared away at most', async () => {
    await query(
      `INSERT INTO session (hash, organisation_id, member_id, expires_at)
       SELECT sha256(number::text::bytea), $1, $2, now() - interval '1 hour' FROM generate_series(1, 12) number`,
      [member.organisationId, member.memberId],
    )
    await suite.database.dataSource.transaction(async (other) => {
      await other.query(`SELECT FROM session WHERE hash = sha256('1') FOR UPDATE`)
      await signIn()
    })
    expect(await query('SELECT FROM session WHERE expires_at < now()')).to.have.length(2)
  })

  it('expire after 12 hours, or earlier with their key', async () => {
    const cookie = await signIn()
    const hours = `SELECT round(extract(epoch FROM s.expires_at - now()) / 3600)::int AS hours
                     FROM session s JOIN api_key k ON k.id = s.api_key_id WHERE k.member_id = $1`
    expect(await query(hours, [member.memberId])).to.deep.equal([{ hours: 12 }])
    await query(
      `UPDATE session s SET expires_at = now() - interval '1 second'
         FROM api_key k WHERE k.id = s.api_key_id AND k.member_id = $1`,
      [member.memberId],
    )
    expect((await ask('GET', '/api/session', cookie)).status).to.equal(401)

    await query(`UPDATE api_key SET expires_at = now() + interval '2 hours' WHERE member_id = $1`, [
      member.memberId,
    ])
    await signIn()
    expect(await query(hours, [member.memberId]), 'what had expired is cleared away').to.deep.equal([
      { hours: 2 },
    ])
  })

  it('end at sign-out, which deletes the cookie', async () => {
    const cookie = await signIn()
    const { status, headers } = await ask('DELETE', '/api/session', cookie, SAME_ORIGIN)
    expect(status).to.equal(204)
    expect(headers.get('set-cookie')).to.match(/^posthorn_session=; .*Max-Age=0$/)
    expect((await ask('GET', '/api/session', cookie)).status).to.equal(401)
  })

  it('end at a sign-out with an API key too, of whichever member', async () => {
    const cookie = await signIn()
    const { apiKey } = await createMember(suite.database.dataSource)
    const { status } = await suite.api.call('DELETE', '/api/session', { apiKey, headers: { cookie } })
    expect(status).to.equal(204)
    expect((await ask('GET', '/api/session', cookie)).status).to.equal(401)
  })

  it('cannot open further sessions', async () => {
    const cookie = await signIn()
    expect((await ask('POST', '/api/session', cookie, SAME_ORIGIN)).status).to.equal(401)
  })

  it('are limited to twenty per key; the oldest is evicted', async () => {
    const first = await signIn()
    for (let index = 0; index < 20; index++) await signIn()
    expect((await ask('GET', '/api/session', first)).status).to.equal(401)
    const [{ count } = {}] = await query(
      'SELECT count(*)::int AS count FROM session s JOIN api_key k ON k.id = s.api_key_id WHERE k.member_id = $1',
      [member.memberId],
    )
    expect(count).to.equal(20)
  })

  it('count against the limits of their key, and guesses against those of their address', async () => {
    const limited = await createTestApi(suite.database.dataSource, {
      rateLimits: createRateLimits(
        { management: 2, publish: 0, authFailures: 2, open: 0 },
        { metrics: createMetrics() },
      ),
    })
    const cookie = await signIn(limited)
    const statuses = async (of: string) => {
      const seen: number[] = []
      for (let index = 0; index < 3; index++)
        seen.push((await ask('GET', '/api/session', of, {}, limited)).status)
      return seen
    }
    expect(await statuses(cookie)).to.deep.equal([200, 429, 429])
    expect(await statuses(`posthorn_session=${'A'.repeat(43)}`)).to.deep.equal([401, 401, 429])
    await limited.close()
  })

  it('are recorded in the audit trail at sign-in and sign-out', async () => {
    const cookie = await signIn()
    await ask('DELETE', '/api/session', cookie, SAME_ORIGIN)
    const { json } = await suite.api.call('GET', `/api/orgs/${member.organisationId}/audit`, {
      apiKey: member.apiKey,
    })
    const actions = (json as { data: { action: string; memberId: string }[] }).data
    expect(actions.map(({ action, memberId }) => [action, memberId])).to.deep.equal([
      ['session.ended', member.memberId],
      ['session.opened', member.memberId],
    ])
  })

  it('show the member, and the Temporal UI only to members with full access', async () => {
    const temporalUi = { url: 'https://temporal.example.com', namespace: 'default' }
    const api = await createTestApi(suite.database.dataSource, { temporalUi })
    const { organisationId } = member
    const reader = await createMember(suite.database.dataSource, {
      organisationId,
      permissions: ['webhook:read'],
    })
    const whoIs = async (who: TestMember) =>
      (await api.call('GET', '/api/session', { apiKey: who.apiKey })).json
    expect(await whoIs(member)).to.deep.include({ temporalUi, expiresAt: null })
    expect(await whoIs(reader)).to.deep.include({
      temporalUi: null,
      organisation: { id: organisationId, name: 'Camping Test', timeZone: 'Europe/Brussels' },
      member: { id: reader.memberId, name: 'Test Member', fullAccess: false, permissions: ['webhook:read'] },
    })
    await api.close()
  })
})

import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { callerCachesExpired } from '../../../src/accounts/caller-lookup.ts'
import { hashCredential } from '../../../src/credentials.ts'
import { cookieOf, createTestApi, useApi } from '../../helpers/api/api.ts'
import { SAME_ORIGIN } from '../../helpers/api/operator.ts'
import { createPushBrowser } from '../../helpers/notifications/push-browser.ts'
import { createMember, type TestMember } from '../../helpers/database/factories.ts'

type Key = { id: string; key: string; name: string; memberId: string; expiresAt: string | null }

const DAY_MS = 86_400_000

describe("a member's own API keys", () => {
  const suite = useApi()
  let member: TestMember

  beforeEach(async () => {
    member = await createMember(suite.database.dataSource, { permissions: ['webhook:read'] })
  })

  const call = (method: string, path: string, body?: object, apiKey = member.apiKey, api = suite.api) =>
    api.call(method, `/api/orgs/${member.organisationId}${path}`, { apiKey, body })
  async function create(body: object, apiKey = member.apiKey): Promise<Key> {
    const { status, json, text } = await call('POST', '/api-keys', body, apiKey)
    expect(status, text).to.equal(201)
    return json as Key
  }
  const expire = (inMs: number) =>
    suite.database.dataSource.query(
      `UPDATE api_key SET expires_at = now() + $2 * interval '1 ms' WHERE member_id = $1`,
      [member.memberId, inMs],
    )

  /** Sends a POST whose body ends after `meanwhile`. Returns the status of the answer. */
  async function postSlowly(
    path: string,
    headers: Record<string, string>,
    body: object,
    meanwhile: () => Promise<void>,
  ): Promise<number | undefined> {
    const sent = httpRequest(`${suite.api.url}/api/orgs/${member.organisationId}/${path}`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
    })
    const answered = once(sent, 'response') as Promise<[IncomingMessage]>
    const text = JSON.stringify(body)
    sent.write(text.slice(0, 5))
    // Requests of the address are answered meanwhile, so that this one is authenticated.
    await delay(100)
    await meanwhile()
    sent.end(text.slice(5))
    const [answer] = await answered
    return answer.resume().statusCode
  }

  it('are shown once, act as the member, and are valid nowhere any more once they are revoked', async () => {
    const made = await create({ name: 'ci' })
    expect(made).to.include({ name: 'ci', memberId: member.memberId, expiresAt: null })
    expect((await call('GET', '/webhooks', undefined, made.key)).status).to.equal(200)
    const refused = await call('POST', '/events', { event: 'customer:created', data: {} }, made.key)
    expect(refused.status).to.equal(403)
    const { json, text } = await call('GET', '/api-keys')
    expect((json as { data: Key[] }).data.map(({ name }) => name)).to.deep.equal(['test', 'ci'])
    expect(text).not.to.include(made.key)
    expect((await call('DELETE', `/api-keys/${made.id}`)).status).to.equal(204)
    expect((await call('GET', '/webhooks', undefined, made.key)).status).to.equal(401)
    expect((await call('DELETE', `/api-keys/${made.id}`)).status).to.equal(204)
    expect(((await call('GET', '/api-keys')).json as { data: Key[] }).data).to.have.length(1)
  })

  it('of another member are neither listed nor revoked', async () => {
    const { organisationId } = member
    const other = await createMember(suite.database.dataSource, { organisationId })
    const theirs = await create({ name: 'theirs' }, other.apiKey)
    expect((await call('GET', '/api-keys')).text).not.to.include('theirs')
    expect((await call('DELETE', `/api-keys/${theirs.id}`)).status).to.equal(404)
    expect((await call('GET', '/webhooks', undefined, theirs.key)).status).to.equal(200)
  })

  it('do not outlive the key that made them', async () => {
    await expire(DAY_MS)
    const until = (ms: number) => ({
      name: `until ${ms}`,
      expiresAt: new Date(Date.now() + ms).toISOString(),
    })
    for (const body of [{ name: 'forever' }, until(2 * DAY_MS)]) {
      const { status, json } = await call('POST', '/api-keys', body)
      expect(status).to.equal(422)
      expect(json).to.have.nested.property('errors[0].pointer', '/expiresAt')
    }
    expect((await create(until(DAY_MS / 2))).expiresAt).not.to.equal(null)
  })

  it('are not made by a key that is revoked while its request is under way', async () => {
    const suspended = await createTestApi(suite.database.dataSource, {
      findCaller: () =>
        Promise.resolve({
          ...member,
          apiKeyId: revoked.id,
          keyHash: hashCredential(revoked.key),
          fullAccess: false,
          permissions: [],
          isErasing: false,
        }),
    })
    const revoked = await create({ name: 'leaked' })
    await call('DELETE', `/api-keys/${revoked.id}`)
    const { status } = await call('POST', '/api-keys', { name: 'heir' }, revoked.key, suspended)
    await suspended.close()
    expect(status).to.equal(401)
  })

  it('are not made in a session that ends while the request is being sent, nor are push subscriptions', async () => {
    const { p256dh, auth } = createPushBrowser()
    const subscription = { endpoint: `https://push.example.com/${p256dh}`, keys: { p256dh, auth } }
    const bodies = { 'api-keys': { name: 'heir' }, 'push-subscriptions': subscription }
    for (const [path, body] of Object.entries(bodies)) {
      const { apiKey } = member
      const headers = {
        cookie: cookieOf(await suite.api.call('POST', '/api/session', { apiKey })),
        ...SAME_ORIGIN,
      }
      const status = await postSlowly(path, headers, body, async () => {
        expect((await suite.api.call('DELETE', '/api/session', { headers })).status).to.equal(204)
      })
      expect(status, path).to.equal(401)
    }
  })

  it('do nothing once they are revoked, or a right of their member is taken, while a body is being sent', async () => {
    const { organisationId } = member
    const permissions = ['webhook:manage', 'event:publish', 'customer:read']
    const { apiKey, memberId } = await createMember(suite.database.dataSource, {
      organisationId,
      permissions,
    })
    const webhook = {
      url: 'https://a.example.com/hook',
      subscribedEventKeys: ['customer:created'],
      enabled: true,
    }
    const bodies = { webhooks: webhook, events: { event: 'customer:created', data: {} } }
    for (const [path, body] of Object.entries(bodies)) {
      const { id, key } = await create({ name: path }, apiKey)
      const status = await postSlowly(path, { 'x-api-key': key }, body, async () => {
        expect((await call('DELETE', `/api-keys/${id}`, undefined, apiKey)).status).to.equal(204)
      })
      expect(status, path).to.equal(401)
    }
    const status = await postSlowly('webhooks', { 'x-api-key': apiKey }, webhook, async () => {
      await suite.database.dataSource.query(`UPDATE member SET permissions = '{}' WHERE id = $1`, [memberId])
      await callerCachesExpired()
    })
    expect(status).to.equal(403)
  })

  it('are in the audit trail with the key that made them, without their value', async () => {
    const made = await create({ name: 'ci' })
    await call('DELETE', `/api-keys/${made.id}`)
    const entries = await suite.database.dataSource.query<{ action: string; member_id: string }[]>(
      'SELECT action, member_id, api_key_id, details FROM audit_entry WHERE organisation_id = $1 ORDER BY id',
      [member.organisationId],
    )
    expect(entries.map(({ action }) => action)).to.deep.equal(['api_key.created', 'api_key.revoked'])
    for (const entry of entries) expect(entry).to.include({ member_id: member.memberId })
    expect(JSON.stringify(entries)).not.to.include(made.key)
  })

  it('are fifty at most, also where one is revoked for each that is made', async () => {
    const answers = await Promise.all(
      Array.from({ length: 52 }, (_, index) => call('POST', '/api-keys', { name: `key ${index}` })),
    )
    expect(answers.filter(({ status }) => status === 201)).to.have.length(49)
    const refused = answers.find(({ status }) => status === 409)
    expect(refused?.json).to.include({ code: 'too_many_api_keys' })
    await suite.database.dataSource.query('UPDATE api_key SET revoked_at = now() WHERE name LIKE $1', [
      'key %',
    ])
    expect((await call('POST', '/api-keys', { name: 'one more' })).status).to.equal(409)
  })

  it('are made by operators only where the setting says so, and can still be revoked', async () => {
    const made = await create({ name: 'ci' })
    const off = await createTestApi(suite.database.dataSource, { memberApiKeys: false })
    const refused = await call('POST', '/api-keys', { name: 'another' }, member.apiKey, off)
    expect(refused.json).to.include({ status: 409, code: 'member_api_keys_off' })
    const listed = await call('GET', '/api-keys', undefined, member.apiKey, off)
    expect(listed.json).to.include({ isCreationEnabled: false })
    const revoked = await call('DELETE', `/api-keys/${made.id}`, undefined, member.apiKey, off)
    expect(revoked.status).to.equal(204)
    await off.close()
  })
})

import { mock } from 'node:test'
import { expect } from 'chai'
import { createOperatorKeys } from '../../../src/accounts/operator.ts'
import { cookieOf, createTestApi, useApi } from '../../helpers/api/api.ts'
import { asOperator, secretOf } from '../../helpers/api/operator.ts'
import { createMember, createWebhookRow } from '../../helpers/database/factories.ts'

const SAME_ORIGIN = { 'sec-fetch-site': 'same-origin' }
const OVERVIEW = '/api/operator/overview'

describe('a session of an operator key', () => {
  const suite = useApi()
  let organisationId: string
  let webhookId: string

  before(async () => {
    ;({ organisationId } = await createMember(suite.database.dataSource))
    const url = 'https://hooks.customer.com/'
    webhookId = (await createWebhookRow(suite.database.dataSource, { organisationId, url })).id
  })

  const query = <Row>(sql: string) => suite.database.dataSource.query<Row[]>(sql)
  const signIn = async (name: Parameters<typeof asOperator>[0] = 'all', on = suite.api): Promise<string> => {
    const answer = await on.call('POST', '/api/operator/session', asOperator(name))
    expect(answer.status).to.equal(200)
    expect(answer.headers.get('set-cookie')).to.match(
      /^posthorn_operator_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=\d+$/,
    )
    return cookieOf(answer)
  }
  const status = async (method: string, path: string, headers: Record<string, string>, on = suite.api) =>
    (await on.call(method, path, { headers })).status

  it('lasts 12 hours in the browser, also where the clock of the machine is ahead by more', async () => {
    mock.method(Date, 'now', () => performance.timeOrigin + performance.now() + 13 * 3_600_000)
    const signedIn = suite.api.call('POST', '/api/operator/session', asOperator('all'))
    const { headers } = await signedIn.finally(() => mock.restoreAll())
    expect(headers.get('set-cookie')).to.match(/Max-Age=43[012]\d\d$/)
  })

  it('opens what the pages of operators need, and nothing else', async () => {
    const cookie = await signIn()
    const { json } = await suite.api.call('GET', '/api/operator/session', { headers: { cookie } })
    expect(json).to.deep.include({ name: 'all', scopes: ['manage', 'publish', 'portal', 'observe'] })
    expect(await status('GET', OVERVIEW, { cookie })).to.equal(200)
    expect(await status('GET', '/api/operator/organisations', { cookie })).to.equal(401)
    expect(await status('GET', `/api/orgs/${organisationId}/webhooks`, { cookie })).to.equal(401)
    const [name, value] = cookie.split('=')
    expect(
      await status('GET', `/api/orgs/${organisationId}/webhooks`, { cookie: `posthorn_session=${value}` }),
    ).to.equal(401)
    expect(name).to.equal('posthorn_operator_session')
  })

  it('has the scopes of its key', async () => {
    const cookie = await signIn('observer')
    const path = `/api/operator/organisations/${organisationId}/webhooks/${webhookId}/enable`
    expect(await status('POST', path, { cookie, ...SAME_ORIGIN })).to.equal(403)
    expect(await status('POST', path, { cookie: await signIn('all'), ...SAME_ORIGIN })).to.equal(200)
  })

  it('changes nothing for pages of another origin', async () => {
    const cookie = await signIn()
    const path = `/api/operator/organisations/${organisationId}/webhooks/${webhookId}/enable`
    for (const site of ['cross-site', 'same-site', 'none'])
      expect(await status('POST', path, { cookie, 'sec-fetch-site': site })).to.equal(403)
    expect(await status('GET', OVERVIEW, { cookie, 'sec-fetch-site': 'cross-site' })).to.equal(403)
  })

  it('ends with a sign-out, after twelve hours, and with its key', async () => {
    const cookie = await signIn()
    expect(await status('DELETE', '/api/operator/session', { cookie, ...SAME_ORIGIN })).to.equal(204)
    expect(await status('GET', OVERVIEW, { cookie })).to.equal(401)
    const withKey = await signIn()
    expect(
      await status('DELETE', '/api/operator/session', { ...asOperator('all').headers, cookie: withKey }),
    ).to.equal(204)
    expect(await status('GET', OVERVIEW, { cookie: withKey })).to.equal(401)

    const another = await signIn()
    for (const key of [
      { name: 'all', secret: `${secretOf('all')}2`, scopes: ['observe'] },
      { name: 'renamed', secret: secretOf('all'), scopes: ['observe'] },
    ] as const) {
      const restarted = await createTestApi(suite.database.dataSource, {
        operatorKeys: createOperatorKeys([key]),
      })
      expect(await status('GET', OVERVIEW, { cookie: another }, restarted)).to.equal(401)
      await restarted.close()
    }
    expect(await status('GET', OVERVIEW, { cookie: another })).to.equal(200)
    await query('UPDATE session SET expires_at = now() WHERE operator IS NOT NULL')
    expect(await status('GET', OVERVIEW, { cookie: another })).to.equal(401)
  })

  it('is one of twenty of its key at most', async () => {
    const first = await signIn('observer')
    for (let count = 0; count < 20; count++) await signIn('observer')
    expect(await status('GET', OVERVIEW, { cookie: first })).to.equal(401)
    const [{ count } = { count: 0 }] = await query<{ count: number }>(
      `SELECT count(*)::int AS count FROM session WHERE operator = 'observer'`,
    )
    expect(count).to.equal(20)
  })
})

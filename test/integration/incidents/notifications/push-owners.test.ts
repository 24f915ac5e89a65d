import { expect } from 'chai'
import {
  deleteEndedPushSubscriptions,
  findPushSubscription,
  listPushSubscriptions,
} from '../../../../src/db/queries/push-subscriptions.ts'
import { cookieOf, useApi } from '../../../helpers/api/api.ts'
import { asOperator, createPortalLink, SAME_ORIGIN, tokenOf } from '../../../helpers/api/operator.ts'
import { createMember, replaceKeyValue, type TestMember } from '../../../helpers/database/factories.ts'
import { eventually } from '../../../helpers/eventually.ts'
import { createPushBrowser } from '../../../helpers/notifications/push-browser.ts'
import { openTransaction } from '../../../helpers/database/database.ts'

type Subscription = { id: string }

describe('push subscriptions end with', () => {
  const suite = useApi()
  let member: TestMember
  let colleague: TestMember
  beforeEach(async () => {
    member = await createMember(suite.database.dataSource, { permissions: [] })
    const { organisationId } = member
    colleague = await createMember(suite.database.dataSource, { organisationId })
  })

  const browser = () => {
    const { p256dh, auth } = createPushBrowser()
    return { endpoint: `https://push.example.com/${p256dh}`, keys: { p256dh, auth } }
  }
  const withKey = async ({ apiKey }: TestMember) => {
    const answer = await suite.api.call('POST', path(), { apiKey, body: browser() })
    expect(answer.status, answer.text).to.equal(201)
    return answer.json as Subscription
  }
  const signIn = async (as = member, former = '') =>
    cookieOf(await suite.api.call('POST', '/api/session', { apiKey: as.apiKey, headers: { cookie: former } }))
  const path = () => `/api/orgs/${member.organisationId}/push-subscriptions`
  async function subscribeIn(cookie: string, body = browser()): Promise<Subscription> {
    const headers = { cookie, ...SAME_ORIGIN }
    const answer = await suite.api.call('POST', path(), { headers, body })
    expect(answer.status, answer.text).to.be.oneOf([200, 201])
    return answer.json as Subscription
  }
  const ofPortal = async (as = member, former = '') => {
    const token = tokenOf(await createPortalLink(suite.api, as))
    const headers = { ...SAME_ORIGIN, cookie: former }
    const body = { token, replace: true }
    return cookieOf(await suite.api.call('POST', '/api/session/portal-link', { headers, body }))
  }
  const change = (text: string) => suite.database.dataSource.query(text, [member.memberId])
  const kept = async () => {
    const shown = await listPushSubscriptions(
      suite.database.dataSource,
      member.organisationId,
      member.memberId,
    )
    return shown.map(({ id }) => id)
  }

  it('the session: at sign-out, and only those of this session', async () => {
    for (const open of [signIn, ofPortal]) {
      const [cookie, other] = [await open(), await open()]
      await subscribeIn(cookie)
      const { id } = await subscribeIn(other)
      const headers = { cookie, ...SAME_ORIGIN }
      expect((await suite.api.call('DELETE', '/api/session', { headers })).status).to.equal(204)
      expect(await kept()).to.deep.equal([id])
      await suite.api.call('DELETE', path(), { apiKey: member.apiKey })
    }
  })

  it('the session: a sign-in in its place waits for what is being made in it, and holds up none of that', async () => {
    const cookie = await signIn()
    const { id } = await subscribeIn(cookie)
    const runner = await openTransaction(suite.database.dataSource)
    await runner.query(
      'SELECT 1 FROM session JOIN push_subscription ON session_hash = hash FOR KEY SHARE OF session',
    )
    const next = signIn(member, cookie)
    await eventually(async () =>
      expect(
        await suite.database.dataSource.query(
          `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'`,
        ),
      ).not.to.deep.equal([]),
    )
    await runner.query('SET LOCAL lock_timeout = 200')
    await runner.query('UPDATE push_subscription SET auth = auth WHERE id = $1', [id])
    await runner.commitTransaction()
    await runner.release()
    await next
    expect(await kept()).to.deep.equal([id])
  })

  it('the session: when another member signs in in its place, and not when the same one does', async () => {
    for (const open of [signIn, ofPortal]) {
      const first = await open()
      const { id } = await subscribeIn(first)
      const second = await open(member, first)
      expect(await kept()).to.deep.equal([id])
      await open(colleague, second)
      expect(await kept()).to.deep.equal([])
    }
  })

  it('the sessions: when an operator ends those of the member', async () => {
    await subscribeIn(await ofPortal())
    await subscribeIn(await signIn())
    await change("UPDATE session SET expires_at = now() - interval '1 second' WHERE member_id = $1")
    const { id } = await withKey(member)
    const sessions = `/api/operator/organisations/${member.organisationId}/members/${member.memberId}/sessions`
    expect((await suite.api.call('DELETE', sessions, asOperator('manager'))).status).to.equal(204)
    expect(await kept(), 'what the key made itself ends with the key').to.deep.equal([id])
  })

  for (const [how, end] of Object.entries({
    revoked: () => change('UPDATE api_key SET revoked_at = now() WHERE member_id = $1'),
    expired: () => change("UPDATE api_key SET expires_at = now() - interval '1 second' WHERE member_id = $1"),
    'given another value': () => replaceKeyValue(suite.database.dataSource, member),
  }))
    it(`the API key: when it is ${how}, nothing more is sent, and the subscriptions are deleted`, async () => {
      const { dataSource } = suite.database
      const { organisationId } = member
      const made = [await withKey(member), await subscribeIn(await signIn())]
      const other = await withKey(colleague)
      await end()
      for (const { id } of made)
        expect(await findPushSubscription(dataSource, organisationId, id)).to.equal(null)
      expect(await kept()).to.deep.equal([])
      await deleteEndedPushSubscriptions(dataSource, organisationId)
      const left = await dataSource.query<{ id: string }[]>(
        'SELECT id FROM push_subscription WHERE organisation_id = $1',
        [organisationId],
      )
      expect(left).to.deep.equal([{ id: other.id }])
    })

  it('no earlier: a session that expires, or is opened again, leaves them to its member', async () => {
    const cookie = await ofPortal()
    const body = browser()
    const { id } = await subscribeIn(cookie, body)
    await change("UPDATE session SET expires_at = now() - interval '1 second' WHERE member_id = $1")
    expect(await kept()).to.deep.equal([id])
    const later = await ofPortal()
    await subscribeIn(later, body)
    await suite.api.call('DELETE', '/api/session', { headers: { cookie: later, ...SAME_ORIGIN } })
    expect(await kept(), 'once it belongs to the later session').to.deep.equal([])
  })
})

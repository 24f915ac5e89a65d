import { expect } from 'chai'
import { cookieOf, useApi } from '../../helpers/api/api.ts'
import { createPortalLink, SAME_ORIGIN, tokenOf } from '../../helpers/api/operator.ts'
import { createMember, type TestMember } from '../../helpers/database/factories.ts'

describe('portal links in a browser that is signed in', () => {
  const suite = useApi()
  const linkFor = async (member: TestMember) => tokenOf(await createPortalLink(suite.api, member))
  const open = (body: object, cookie: string) =>
    suite.api.call('POST', '/api/session/portal-link', { headers: { ...SAME_ORIGIN, cookie }, body })
  const whoIs = async (cookie: string) =>
    suite.api.call('GET', '/api/session', { headers: { cookie, ...SAME_ORIGIN } })
  const endings = (organisationId: string) =>
    suite.database.dataSource.query<object[]>(
      `SELECT member_id AS "memberId", details FROM audit_entry
        WHERE organisation_id = $1 AND action = 'session.ended'`,
      [organisationId],
    )

  it('replace the session of another member only when that is confirmed, and end it then', async () => {
    const [victim, attacker] = [
      await createMember(suite.database.dataSource),
      await createMember(suite.database.dataSource),
    ]
    const cookie = cookieOf(await suite.api.call('POST', '/api/session', { apiKey: victim.apiKey }))
    const token = await linkFor(attacker)
    const asked = await open({ token }, cookie)
    expect([asked.status, asked.headers.get('set-cookie')]).to.deep.equal([409, null])
    const named = ({ organisationId, memberId }: TestMember) => ({
      organisation: { id: organisationId, name: 'Camping Test' },
      member: { id: memberId, name: 'Test Member' },
    })
    expect(asked.json).to.deep.include({
      code: 'another_member_signed_in',
      signedIn: named(victim),
      requested: named(attacker),
    })
    expect((await whoIs(cookie)).json).to.have.nested.property('member.id', victim.memberId)
    const replaced = await open({ token, replace: true }, cookie)
    expect(replaced.status, 'the link is not used up by the question').to.equal(200)
    expect((await whoIs(cookieOf(replaced))).json).to.have.nested.property('member.id', attacker.memberId)
    expect((await whoIs(cookie)).status, 'the replaced session').to.equal(401)
    expect(await endings(victim.organisationId)).to.deep.equal([
      { memberId: victim.memberId, details: { by: 'sign_in' } },
    ])
  })

  it('replace a session of the same member without a question, and end it', async () => {
    const member = await createMember(suite.database.dataSource)
    const cookie = cookieOf(await open({ token: await linkFor(member) }, ''))
    const again = await open({ token: await linkFor(member) }, cookie)
    expect(again.status).to.equal(200)
    expect([(await whoIs(cookie)).status, (await whoIs(cookieOf(again))).status]).to.deep.equal([401, 200])
  })

  it('ask nothing where the session has ended or never was', async () => {
    const [former, member] = [
      await createMember(suite.database.dataSource),
      await createMember(suite.database.dataSource),
    ]
    const cookie = cookieOf(await open({ token: await linkFor(former) }, ''))
    await suite.database.dataSource.query(`UPDATE session SET expires_at = now() - interval '1 second'`)
    for (const sent of [cookie, `posthorn_session=${'A'.repeat(43)}`])
      expect((await open({ token: await linkFor(member) }, sent)).status).to.equal(200)
  })

  it('say nothing of who is signed in to a link that is not valid', async () => {
    const member = await createMember(suite.database.dataSource)
    const cookie = cookieOf(await open({ token: await linkFor(member) }, ''))
    const { status, json } = await open({ token: 'x'.repeat(43) }, cookie)
    expect([status, (json as { code: string }).code]).to.deep.equal([401, 'invalid_portal_link'])
    expect((await whoIs(cookie)).status).to.equal(200)
  })
})

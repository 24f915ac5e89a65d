import { expect } from 'chai'
import { cookieOf, createTestApi, type TestApi, useApi } from '../../helpers/api/api.ts'
import { createMember, type TestMember } from '../../helpers/database/factories.ts'

const EMBEDDERS = ['https://app.example.com', 'https://admin.example.com:8443']

describe('framing of the developer area', () => {
  const suite = useApi()
  let member: TestMember
  let framed: TestApi
  before(async () => {
    member = await createMember(suite.database.dataSource)
    const publicUrl = 'https://hooks.example.com'
    const api = await createTestApi(suite.database.dataSource, {
      publicUrl,
      frameAncestors: EMBEDDERS,
      trustedProxies: ['127.0.0.1/32'],
    })
    const behindProxy = { 'x-forwarded-host': 'hooks.example.com', 'x-forwarded-proto': 'https' }
    framed = {
      ...api,
      call: (method, path, options = {}) =>
        api.call(method, path, { ...options, headers: { ...behindProxy, ...options.headers } }),
    }
  })
  after(() => framed.close())

  const framingOf = async (on: TestApi, path: string) => {
    const { headers } = await on.call('GET', path)
    const policy = headers.get('content-security-policy') ?? ''
    return [/frame-ancestors ([^;]*)$/.exec(policy)?.[1], headers.get('x-frame-options')]
  }
  const FORBIDDEN = ["'none'", 'DENY']

  it('is forbidden by default, for every page and answer', async () => {
    for (const path of ['/developer', '/docs', '/healthz', '/nowhere', '/assets/icon.svg'])
      expect(await framingOf(suite.api, path), path).to.deep.equal(FORBIDDEN)
  })

  it('is allowed to the configured origins and no others, and for no other page', async () => {
    expect(await framingOf(framed, '/developer')).to.deep.equal([EMBEDDERS.join(' '), null])
    for (const path of ['/docs', '/healthz', '/nowhere', '/assets/icon.svg', '/api/session'])
      expect(await framingOf(framed, path), path).to.deep.equal(FORBIDDEN)
  })

  it('keeps the rest of the policy as it is', async () => {
    const policyOf = async (on: TestApi) =>
      (await on.call('GET', '/developer')).headers
        .get('content-security-policy')
        ?.replace(/frame-ancestors .*/, '')
    expect(await policyOf(framed)).to.equal(await policyOf(suite.api))
  })

  it('makes the cookie one that is partitioned by the site around the frame, over TLS', async () => {
    const { headers } = await framed.call('POST', '/api/session', { apiKey: member.apiKey })
    expect(headers.get('set-cookie')).to.match(
      /^__Host-posthorn_framed_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=None; Secure; Partitioned; Max-Age=\d+$/,
    )
  })

  it('leaves the cookie as it is over plain HTTP on loopback', async () => {
    const plain = await createTestApi(suite.database.dataSource, { frameAncestors: EMBEDDERS })
    const { headers } = await plain.call('POST', '/api/session', { apiKey: member.apiKey })
    expect(headers.get('set-cookie')).to.match(
      /^posthorn_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; M/,
    )
    await plain.close()
  })

  it('lets no other site use the session, not even to read', async () => {
    const cookie = cookieOf(await framed.call('POST', '/api/session', { apiKey: member.apiKey }))
    const ask = (method: string, site: string) =>
      framed.call(method, '/api/session', { headers: { cookie, 'sec-fetch-site': site } })
    for (const method of ['GET', 'DELETE'])
      for (const site of ['cross-site', 'same-site'])
        expect((await ask(method, site)).json, method).to.include({ code: 'cross_site' })
    const unmarked = await framed.call('GET', '/api/session', { headers: { cookie } })
    expect(unmarked.json, 'a browser that does not say').to.include({ code: 'cross_site' })
    const withKey = await framed.call('GET', '/api/session', { headers: { cookie }, apiKey: member.apiKey })
    expect(withKey.status).to.equal(200)
    expect((await ask('GET', 'same-origin')).status).to.equal(200)
    expect((await ask('DELETE', 'same-origin')).status).to.equal(204)
  })
})

import { expect } from 'chai'
import Koa from 'koa'
import { mailboxPage } from '../../../src/dev/mailbox-page.ts'
import { listen } from '../../../src/http/listen.ts'
import { errorHandler } from '../../../src/http/answer.ts'
import { cookieOf, createTestApi, type TestApi, useApi } from '../../helpers/api/api.ts'
import { type RawAnswer, sendBytes, sendRaw } from '../../helpers/api/raw-request.ts'
import { createMember, replaceKeyValue, type TestMember } from '../../helpers/database/factories.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'

const DEMO_KEY = 'phk_demo_full_access_0001'
const LOOPBACK_HOSTS = ['localhost:3000', '127.0.0.1:3000', '[::1]:3000', 'LOCALHOST', 'app.localhost:3000']
const OTHER_HOSTS = ['rebound.example:3000', 'localhost.example', '127.0.0.1.example', '10.0.0.1:3000']

describe('the host of a request', () => {
  const suite = useApi()
  let member: TestMember
  let secured: TestApi
  before(async () => {
    member = await createMember(suite.database.dataSource)
    secured = await createTestApi(suite.database.dataSource, {
      publicUrl: 'https://hooks.example.com',
      trustedProxies: ['127.0.0.2/32'],
    })
  })
  after(() => secured.close())

  const webhooks = () => `/api/orgs/${member.organisationId}/webhooks`
  const get = (on: TestApi, path: string, headers: Record<string, string>) =>
    sendRaw(on.url, { method: 'GET', path, headers })
  const codeOf = ({ text }: RawAnswer) => (JSON.parse(text) as { code?: string }).code

  const sessionOf = async (on: TestApi): Promise<string> =>
    cookieOf(await on.call('POST', '/api/session', { apiKey: member.apiKey }))

  it('has to be named once', async () => {
    for (const path of ['/healthz', '/developer', webhooks()]) {
      const hosts = 'Host: localhost\r\nhost: evil.example\r\nConnection: close\r\n'
      const answer = await sendBytes(suite.api.url, `GET ${path} HTTP/1.1\r\n${hosts}\r\n`)
      expect(answer, path)
        .to.match(/^HTTP\/1\.1 400 /)
        .and.include('"repeated_host"')
    }
  })

  it('must be a loopback host for the key of the demo organisation', async () => {
    const demo = await createMember(suite.database.dataSource)
    await replaceKeyValue(suite.database.dataSource, demo, DEMO_KEY)
    const path = `/api/orgs/${demo.organisationId}/webhooks`
    const ask = async (host: string) => (await get(suite.api, path, { host, 'x-api-key': DEMO_KEY })).status
    for (const host of LOOPBACK_HOSTS) expect(await ask(host), host).to.equal(200)
    for (const host of OTHER_HOSTS) expect(await ask(host), host).to.equal(401)
  })

  it('must be a loopback host for the pages of development', async () => {
    const app = new Koa()
    const page = mailboxPage(() => [], { receiverUrl: '', notifyAfterSeconds: 300, otherMailServer: null })
    app.use(errorHandler(silentLogger)).use(page)
    const listening = await listen(app, { host: '127.0.0.1', port: 0 })
    const ask = async (host: string) =>
      (await sendRaw(listening.url, { method: 'GET', path: '/dev/mailbox', headers: { host } })).status
    try {
      for (const host of LOOPBACK_HOSTS) expect(await ask(host), host).to.equal(200)
      for (const host of OTHER_HOSTS) expect(await ask(host), host).to.equal(421)
    } finally {
      await listening.close()
    }
  })

  it('must be that of POSTHORN_PUBLIC_URL for pages and sessions, where that is set', async () => {
    const cookie = await sessionOf(secured)
    for (const [path, headers] of [
      ['/developer', {}],
      ['/docs', {}],
      ['/assets/icon.svg', {}],
      ['/api/session', { cookie }],
    ] as const) {
      for (const host of ['hooks.example.com', 'hooks.example.com:443', 'HOOKS.example.com'])
        expect((await get(secured, path, { ...headers, host })).status, `${path} ${host}`).to.equal(200)
      for (const host of [
        'rebound.example',
        'hooks.example.com:8443',
        '127.0.0.1',
        'hooks.example.com.evil.example',
      ]) {
        const answer = await get(secured, path, { ...headers, host })
        expect([answer.status, codeOf(answer)], `${path} ${host}`).to.deep.equal([421, 'wrong_host'])
      }
    }
  })

  it('may be any for keys and probes', async () => {
    const host = 'posthorn-api.internal:3000'
    expect((await get(secured, webhooks(), { host, 'x-api-key': member.apiKey })).status).to.equal(200)
    for (const path of ['/healthz', '/readyz', '/openapi.json'])
      expect((await get(secured, path, { host })).status, path).to.equal(200)
  })

  it('may be any where POSTHORN_PUBLIC_URL is not set', async () => {
    expect((await get(suite.api, '/developer', { host: 'hooks.example.com' })).status).to.equal(200)
  })

  it('is any loopback host where POSTHORN_PUBLIC_URL has one', async () => {
    const local = await createTestApi(suite.database.dataSource, { publicUrl: 'http://127.0.0.1:3000' })
    const ask = async (host: string) => (await get(local, '/developer', { host })).status
    for (const host of LOOPBACK_HOSTS) expect(await ask(host), host).to.equal(200)
    for (const host of OTHER_HOSTS) expect(await ask(host), host).to.equal(421)
    await local.close()
  })

  it('is kept on https by browsers, where POSTHORN_PUBLIC_URL is https', async () => {
    for (const path of ['/developer', '/healthz', '/nowhere'])
      expect((await get(secured, path, { host: 'hooks.example.com' })).headers, path).to.include({
        'strict-transport-security': 'max-age=31536000',
      })
    expect((await get(suite.api, '/developer', { host: 'localhost' })).headers).not.to.have.property(
      'strict-transport-security',
    )
  })
})

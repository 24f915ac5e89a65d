import { request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { expect } from 'chai'
import { createMember, createWebhookRow, type TestMember } from '../../helpers/database/factories.ts'
import { readWebFiles } from '../../../src/http/pages/web-pages.ts'
import { useApi } from '../../helpers/api/api.ts'

type Answer = { status: number; headers: Record<string, unknown>; body: Buffer }

const ALL = 'gzip, deflate, br, zstd'

const SCRIPT = [...readWebFiles().keys()].find((path) => /bundled\/app-main.*\.js$/.test(path)) ?? ''

describe('the compression of answers', () => {
  const suite = useApi()
  let member: TestMember

  before(async () => {
    member = await createMember(suite.database.dataSource)
  })

  /** As it came over the wire, which `fetch` does not show. */
  function get(path: string, accepted?: string, options: { method?: string; body?: string } = {}) {
    const { method = 'GET', body } = options
    return new Promise<Answer>((resolve, reject) => {
      const headers = {
        'x-api-key': member.apiKey,
        ...(accepted === undefined ? {} : { 'accept-encoding': accepted }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      }
      const outgoing = request(`${suite.api.url}${path}`, { method, headers, agent: false })
      outgoing.on('error', reject).on('response', (response) => {
        const { statusCode: status = 0, headers } = response
        if (headers['content-type']?.startsWith('text/event-stream') === true) {
          response.destroy()
          resolve({ status, headers, body: Buffer.of() })
        } else buffer(response).then((received) => resolve({ status, headers, body: received }), reject)
      })
      outgoing.end(body)
    })
  }
  const inOrganisation = (path: string) => `/api/orgs/${member.organisationId}${path}`

  it('is what the client accepts, and changes nothing of the content', async () => {
    // Twice: documents and files are compressed once.
    for (const path of ['/openapi.json', '/openapi.json', SCRIPT, SCRIPT, '/api/event-keys']) {
      const plain = await get(path)
      const gzip = await get(path, 'gzip')
      const brotli = await get(path, ALL)
      expect([plain, gzip, brotli].map(({ status }) => status)).to.deep.equal([200, 200, 200])
      expect([plain, gzip, brotli].map(({ headers }) => headers['content-encoding'])).to.deep.equal([
        undefined,
        'gzip',
        'br',
      ])
      expect(gunzipSync(gzip.body).equals(plain.body), path).to.equal(true)
      expect(brotliDecompressSync(brotli.body).equals(plain.body), path).to.equal(true)
      for (const { headers, body } of [plain, gzip, brotli]) {
        expect(headers['content-length']).to.equal(String(body.length))
        expect(headers['vary']).to.equal('Accept-Encoding')
      }
      if (path === '/openapi.json') expect(brotli.body.length).to.be.below(plain.body.length / 5)
    }
  })

  it('is none where the client wants none, for small answers, and for HEAD', async () => {
    expect((await get('/openapi.json', 'identity')).headers).to.not.have.property('content-encoding')
    expect((await get('/openapi.json', 'gzip;q=0')).headers).to.not.have.property('content-encoding')
    const small = await get('/healthz', ALL)
    expect(small.headers).to.include({ vary: 'Accept-Encoding' }).and.not.have.property('content-encoding')
    const head = await get('/openapi.json', ALL, { method: 'HEAD' })
    expect(head.headers).to.not.have.property('content-encoding')
  })

  it('is none for event streams', async () => {
    const { status, headers } = await get(inOrganisation('/events/stream'), ALL)
    expect([status, headers['content-encoding']]).to.deep.equal([200, undefined])
  })

  it('is none for answers with a secret, however large', async () => {
    const { dataSource } = suite.database
    const body = JSON.stringify({
      url: 'https://receiver.example.com/',
      subscribedEventKeys: ['customer:created'],
      enabled: true,
      description: 'x'.repeat(200),
    })
    const created = await get(inOrganisation('/webhooks'), ALL, { method: 'POST', body })
    expect(created.status, created.body.toString()).to.equal(201)
    expect(JSON.parse(created.body.toString())).to.have.property('signingSecret')
    const webhook = await createWebhookRow(dataSource, {
      organisationId: member.organisationId,
      url: 'https://receiver.example.com/',
    })
    const data = { id: 'cus_1', text: 'x'.repeat(10_000) }
    await get(inOrganisation('/events'), undefined, {
      method: 'POST',
      body: JSON.stringify({ event: 'customer:created', data }),
    })
    const of = inOrganisation(`/webhooks/${webhook.id}`)
    const list = await get(`${of}/deliveries`)
    const [delivery] = (JSON.parse(list.body.toString()) as { data: { id: string }[] }).data
    const signed = await get(`${of}/deliveries/${delivery!.id}/request`, ALL)
    expect(signed.body.length).to.be.above(10_000)
    const secret = await get(`${of}/signing-secret`, ALL)
    for (const { status, headers } of [signed, secret]) {
      expect(status).to.equal(200)
      expect(headers).to.include({ 'cache-control': 'no-store' }).and.not.have.property('content-encoding')
    }
    expect(created.headers).to.not.have.property('content-encoding')
  })

  it('is limited in number at once, and what is over the limit goes out as it is', async () => {
    const answers = await Promise.all(Array.from({ length: 30 }, () => get('/openapi.json', 'br')))
    const plain = await get('/openapi.json')
    for (const { headers, body } of answers) {
      const content = headers['content-encoding'] === 'br' ? brotliDecompressSync(body) : body
      expect(content.equals(plain.body)).to.equal(true)
    }
    expect((await get('/openapi.json', 'br')).headers['content-encoding']).to.equal('br')
  })

  it('leaves validators as they were', async () => {
    const { headers } = await get(SCRIPT, 'br')
    const etag = String(headers['etag'])
    expect(headers['content-encoding']).to.equal('br')
    expect(etag).to.match(/^W\//)
    const again = await new Promise<number | undefined>((resolve, reject) => {
      const outgoing = request(`${suite.api.url}${SCRIPT}`, {
        headers: { 'if-none-match': etag, 'accept-encoding': 'br' },
        agent: false,
      })
      outgoing.on('error', reject).on('response', (response) => resolve(response.resume().statusCode))
      outgoing.end()
    })
    expect(again).to.equal(304)
  })
})

import { request, type IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { expect } from 'chai'
import Koa from 'koa'
import { answer } from '../../../src/http/answer.ts'
import { exportRows } from '../../../src/http/list-route.ts'
import { listen } from '../../../src/http/listen.ts'
import { createMember, createWebhookRow, type TestMember } from '../../helpers/database/factories.ts'
import { useApi } from '../../helpers/api/api.ts'
import { writeBacklog } from '../../helpers/deliveries/backlog.ts'
import { eventually } from '../../helpers/eventually.ts'

const NDJSON = 'application/x-ndjson'
const ROWS = 10_050
const MAX_ROWS = 10_000

describe('a list as NDJSON', () => {
  const suite = useApi()
  let member: TestMember
  let webhookId: string

  before(async () => {
    const { dataSource } = suite.database
    member = await createMember(dataSource, { permissions: ['webhook:read', 'customer:read'] })
    const { organisationId } = member
    webhookId = (await createWebhookRow(dataSource, { organisationId, url: 'https://x.example/' })).id
    await writeBacklog(dataSource, { organisationId, webhookId, state: 'failed', count: ROWS })
    await writeBacklog(dataSource, {
      organisationId,
      webhookId,
      state: 'waiting',
      count: 3,
      eventKey: 'invoice:paid',
    })
  })

  const deliveries = (query = '') =>
    `/api/orgs/${member.organisationId}/webhooks/${webhookId}/deliveries${query}`
  const events = (query = '') => `/api/orgs/${member.organisationId}/events${query}`

  async function get(path: string, accept = NDJSON, key = member.apiKey) {
    const answer = await fetch(`${suite.api.url}${path}`, { headers: { 'x-api-key': key, accept } })
    return { status: answer.status, headers: answer.headers, text: await answer.text() }
  }
  const linesOf = (text: string) =>
    text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Record<string, string>)

  it('has the rows of the JSON list in its order and form, with the filter in force', async () => {
    for (const path of [deliveries('?state=waiting'), events('?eventKey=customer:created&limit=100')]) {
      const { status, headers, text } = await get(path)
      expect([status, headers.get('content-type')], path).to.deep.equal([200, NDJSON])
      expect(headers.get('vary')).to.match(/Accept(,|$)/)
      const { data } = JSON.parse((await get(path, 'application/json')).text) as { data: object[] }
      expect(data).to.not.be.empty
      expect(linesOf(text).slice(0, data.length)).to.deep.equal(data)
    }
    expect(linesOf((await get(deliveries('?state=waiting'))).text)).to.have.length(3)
  })

  it('is bounded, and its last line says where the rest begins', async () => {
    for (const path of [deliveries('?state=failed'), events()]) {
      const lines = linesOf((await get(path)).text)
      expect(lines).to.have.length(MAX_ROWS + 1)
      const { nextCursor = '' } = lines.at(-1) ?? {}
      const rest = linesOf((await get(`${path}${path.includes('?') ? '&' : '?'}cursor=${nextCursor}`)).text)
      expect(rest).to.have.length(ROWS - MAX_ROWS)
      expect(new Set([...lines.slice(0, -1), ...rest].map(({ id }) => id)).size).to.equal(ROWS)
    }
  })

  it('asks for the same rights, and refuses in the same words', async () => {
    const stranger = await createMember(suite.database.dataSource, { permissions: [] })
    for (const [path, key] of [
      [deliveries(), stranger.apiKey],
      [deliveries('?state=nothing'), member.apiKey],
      [deliveries('?cursor=nothing'), member.apiKey],
    ] as const) {
      const [asRows, asJson] = [await get(path, NDJSON, key), await get(path, 'application/json', key)]
      expect(asRows.status).to.equal(asJson.status).and.be.greaterThan(399)
      expect((JSON.parse(asRows.text) as { code: string }).code).to.equal(
        (JSON.parse(asJson.text) as { code: string }).code,
      )
    }
    // A key that the member may not read is in neither form of the list of events.
    expect(linesOf((await get(events('?eventKey=invoice:paid'))).text)).to.deep.equal([])
  })

  it('is JSON unless NDJSON is preferred', async () => {
    for (const accept of ['*/*', 'application/json, application/x-ndjson', 'text/html'])
      expect((await get(deliveries('?limit=1'), accept)).headers.get('content-type')).to.match(
        /^application\/json/,
      )
  })
})

describe('an export', () => {
  type Row = { id: string; text: string }
  let logged: object[] = []
  beforeEach(() => (logged = []))

  /** An endless list of a page of about 1 MB each. */
  async function serve(load: (count: number) => Promise<void>, use: (url: string) => Promise<void>) {
    let count = 0
    const app = new Koa()
    app.silent = true
    app.use(async (ctx) => {
      const stream = await exportRows<Row>({
        organisationId: 'org_one',
        read: async ({ limit }) => {
          await load(++count)
          const page = Array.from({ length: limit }, () => ({ id: 'one', text: 'x'.repeat(5_000) }))
          return { page, last: 'one', searchedUntil: null }
        },
        present: (row) => row,
        cursorAfter: (id) => id,
        after: null,
      })
      await answer(
        ctx,
        { status: 200, text: { type: NDJSON, stream } },
        { warn: (line) => void logged.push(line) },
      )
    })
    const listening = await listen(app, { host: '127.0.0.1', port: 0 })
    try {
      await use(listening.url)
    } finally {
      await listening.close()
    }
  }
  const open = (url: string) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      request(url, { agent: false }).on('error', reject).on('response', resolve).end()
    })

  it('reads no further than its client, and nothing more once that is gone', async () => {
    let pages = 0
    const load = () => {
      pages++
      return Promise.resolve()
    }
    await serve(load, async (url) => {
      const answer = await open(url)
      answer.on('error', () => undefined)
      let before = -1
      await eventually(() => {
        const now = pages
        const isStill = now === before
        before = now
        expect(isStill && now > 0).to.equal(true)
      })
      // What sockets hold; the rest of fifty pages is not read.
      expect(pages).to.be.lessThan(20)
      answer.destroy()
      await eventually(async () => {
        const seen = pages
        await new Promise((resolve) => setImmediate(resolve))
        expect(pages).to.equal(seen)
      })
      expect(pages).to.be.lessThan(20)
      expect(logged, 'a client that is gone').to.deep.equal([])
    })
  })

  it('waits for a page of each other organisation, however many exports that has', async () => {
    const order: string[] = []
    const exported = (organisationId: string) =>
      exportRows<Row>({
        organisationId,
        async read() {
          await new Promise((resolve) => setImmediate(resolve))
          order.push(organisationId)
          return { page: [], last: null }
        },
        present: (row) => row,
        cursorAfter: (id) => id,
        after: null,
      })
    const many = Array.from({ length: 50 }, () => exported('org_many'))
    await Promise.all([...many, exported('org_one')])
    expect(order).to.have.length(51)
    expect(order.indexOf('org_one')).to.be.below(5)
  })

  it('that fails on its way ends the connection, not the body, and is logged', async () => {
    const load = (count: number) =>
      count < 3 ? Promise.resolve() : Promise.reject(new Error('the database is away'))
    await serve(load, async (url) => {
      const answer = await open(url)
      const failure = await buffer(answer).then(
        () => null,
        (error: unknown) => error,
      )
      expect(failure).to.have.property('code', 'ECONNRESET')
      expect(logged).to.have.length(1)
      expect(logged[0]).to.include({ event: 'http.cut_off', path: '/' })
    })
  })

  it('that fails before its first row has no answer yet, whatever pages without a row came before', async () => {
    let pages = 0
    const exported = exportRows<Row>({
      organisationId: 'org_one',
      read: () =>
        ++pages < 3
          ? Promise.resolve({ page: [], last: 'one' })
          : Promise.reject(new Error('the database is away')),
      present: (row) => row,
      cursorAfter: (id) => id,
      after: null,
    })
    expect(await exported.catch((error: unknown) => error)).to.have.property(
      'message',
      'the database is away',
    )
  })
})

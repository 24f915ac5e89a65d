import { once } from 'node:events'
import { connect } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { createTestApi, type TestApi } from '../../helpers/api/api.ts'
import { asOperator, secretOf } from '../../helpers/api/operator.ts'
import { eventually } from '../../helpers/eventually.ts'
import { createMember, type TestMember } from '../../helpers/database/factories.ts'
import { useDatabase } from '../../helpers/database/database.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'

type DatabaseRelay = Record<string, unknown>

describe('the request log', () => {
  const database = useDatabase()
  let api: TestApi
  let member: TestMember
  const lines: DatabaseRelay[] = []

  before(async () => {
    member = await createMember(database.dataSource)
    const note = (fields: object): void => void lines.push(fields as DatabaseRelay)
    api = await createTestApi(database.dataSource, {
      logger: { info: note, warn: note, error: note },
    })
  })
  after(() => api.close())
  beforeEach(() => {
    lines.length = 0
  })

  const webhooks = () => `/api/orgs/${member.organisationId}/webhooks`

  it('writes one line per request, with method, path, status and time', async () => {
    await api.call('GET', webhooks(), { apiKey: member.apiKey })
    expect(lines).to.have.lengthOf(1)
    expect(lines[0]).to.include({ event: 'http.answered', method: 'GET', path: webhooks(), status: 200 })
    expect(lines[0]).to.have.property('durationMs').that.is.a('number')
  })

  it('names the operator key of a request, and no secret of it', async () => {
    await api.call('GET', '/api/operator/organisations', asOperator())
    expect(lines[0]).to.include({ event: 'http.answered', status: 200, operator: 'all' })
    expect(JSON.stringify(lines)).not.to.include(secretOf('all'))
  })

  it('contains no key, body, secret or query string', async () => {
    await api.call('GET', `${webhooks()}?token=in-the-query`, { apiKey: member.apiKey })
    const answer = await api.call('POST', webhooks(), {
      apiKey: member.apiKey,
      body: { url: 'https://in-the-body.example.com/', subscribedEventKeys: ['*'], enabled: true },
    })
    const { signingSecret } = answer.json as { signingSecret: string }
    const text = JSON.stringify(lines)
    expect(text).to.include(webhooks())
    for (const hidden of [member.apiKey, 'in-the-query', 'in-the-body', signingSecret]) {
      expect(text).to.not.include(hidden)
    }
  })

  it('names a request by the id that its answer carries', async () => {
    const answer = await api.call('GET', '/healthz')
    expect(answer.headers.get('x-request-id')).to.match(/^[0-9a-f-]{36}$/)
    expect(lines[0]).to.include({ requestId: answer.headers.get('x-request-id') })
  })

  it("adopts the caller's request id when it is plain, and no other", async () => {
    for (const [given, taken] of [
      ['abc-123', true],
      ['a b', false],
      ['x'.repeat(65), false],
    ] as const) {
      const { headers } = await api.call('GET', '/healthz', { headers: { 'x-request-id': given } })
      expect(headers.get('x-request-id') === given, given).to.equal(taken)
    }
  })

  it('ends a request whose sender disconnects in the middle of a compressed body', async () => {
    await Promise.all(Array.from({ length: 30 }, (_, index) => abandonPackedBody(index)))
    await eventually(() => expect(lines).to.have.lengthOf(30))
    for (const line of lines) expect(line).to.include({ event: 'http.answered', status: 400 })
  })

  /** Begins a request and disconnects after `turns` iterations of the event loop: before, while or after its body is read. */
  async function abandonPackedBody(turns: number): Promise<void> {
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1')
    await once(socket, 'connect')
    const head = [
      `POST ${webhooks()} HTTP/1.1`,
      'Host: x',
      `x-api-key: ${member.apiKey}`,
      'Content-Type: application/json',
      'Content-Encoding: gzip',
      'Content-Length: 5000',
      'Expect: 100-continue',
    ]
    socket.write(`${head.join('\r\n')}\r\n\r\n`)
    // The server says "continue" once the request is in progress.
    await once(socket, 'data')
    socket.write(gzipSync('x'.repeat(1000)).subarray(0, 10))
    for (let turn = 0; turn < turns; turn++) await setImmediate()
    socket.destroy()
  }
})

describe('a peer that sends X-Forwarded-For', () => {
  const database = useDatabase()

  /** What is logged of it for two requests. */
  async function logOf(trustedProxies: string[]): Promise<object[]> {
    const lines: object[] = []
    const logger = { ...silentLogger, warn: (fields: object) => void lines.push(fields) }
    const api = await createTestApi(database.dataSource, { logger, trustedProxies })
    for (const sender of ['203.0.113.1', '203.0.113.2'])
      await api.call('GET', '/healthz', { headers: { 'x-forwarded-for': sender } })
    await api.close()
    return lines
  }

  it('is logged once where it is not in TRUSTED_PROXIES', async () => {
    expect(await logOf([])).to.deep.equal([{ event: 'http.proxy_untrusted', peer: '127.0.0.1' }])
  })

  it('is not logged where it is', async () => {
    expect(await logOf(['127.0.0.1/32'])).to.deep.equal([])
  })
})

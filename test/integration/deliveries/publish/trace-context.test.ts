import { expect } from 'chai'
import { Registry } from 'prom-client'
import { createAttempt } from '../../../../src/deliveries/attempt/make-attempt.ts'
import { createMetrics } from '../../../../src/observability/metrics.ts'
import { createTestApi, type TestApi } from '../../../helpers/api/api.ts'
import { createMember, createWebhookRow, type TestMember } from '../../../helpers/database/factories.ts'
import { useDatabase } from '../../../helpers/database/database.ts'
import { attemptDependencies, attemptRequest, NO_SIGNALS } from '../../../helpers/deliveries/attempts.ts'
import { parseExposition } from '../../../helpers/metrics/exposition.ts'
import { createReceiver, type Receiver } from '../../../helpers/receivers/receiver.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'
const TRACEPARENT = `00-${TRACE}-${SPAN}-01`
const EVENT = { event: 'customer:created', data: { id: 'cus_1' }, timestamp: 1_700_000_000_000 }

describe('traceparent on publishing', () => {
  const database = useDatabase()
  const lines: Record<string, unknown>[] = []
  const note = (fields: object): void => void lines.push(fields as Record<string, unknown>)
  const logger = { info: note, warn: note, error: note }
  let registry: Registry
  let api: TestApi
  let member: TestMember
  let receiver: Receiver

  beforeEach(async () => {
    lines.length = 0
    registry = new Registry()
    api = await createTestApi(database.dataSource, { logger, metrics: createMetrics(registry) })
    member = await createMember(database.dataSource)
    receiver = await createReceiver()
  })
  afterEach(async () => {
    await api.close()
    await receiver.close()
  })

  const publish = (headers: Record<string, string>, more: object = {}) =>
    api.call('POST', `/api/orgs/${member.organisationId}/events`, {
      apiKey: member.apiKey,
      headers,
      body: { ...EVENT, ...more },
    })

  async function publishedEnvelope(headers: Record<string, string>, more: object = {}): Promise<string> {
    const { status, json } = await publish(headers, more)
    expect(status).to.equal(202)
    const [row] = await database.dataSource.query<{ body: Buffer; trace_id: string }[]>(
      'SELECT body, trace_id FROM event WHERE id = $1',
      [(json as { id: string }).id],
    )
    const text = row!.body.toString()
    expect(row!.trace_id).to.equal((JSON.parse(text) as { traceId: string }).traceId)
    return text
  }
  const traceOf = async (headers: Record<string, string>, more: object = {}) => {
    const { traceId, spanId } = JSON.parse(await publishedEnvelope(headers, more)) as Record<string, unknown>
    return { traceId, spanId }
  }
  const ignored = async () =>
    parseExposition(await registry.metrics()).valueOf('posthorn_traceparents_ignored_total')

  it('fills traceId and spanId where the body gives neither', async () => {
    expect(await traceOf({ traceparent: TRACEPARENT })).to.deep.equal({ traceId: TRACE, spanId: SPAN })
    expect(await ignored()).to.equal(0)
  })

  it('changes nothing that the body gives', async () => {
    const given = { traceId: 'own-trace', spanId: 'own-span' }
    expect(await traceOf({ traceparent: TRACEPARENT }, given)).to.deep.equal(given)
    expect(await traceOf({ traceparent: TRACEPARENT }, { spanId: 'own-span' })).to.deep.equal({
      traceId: TRACE,
      spanId: 'own-span',
    })
  })

  it('puts its span into no trace but its own', async () => {
    expect(await traceOf({ traceparent: TRACEPARENT }, { traceId: 'own-trace' })).to.deep.equal({
      traceId: 'own-trace',
      spanId: undefined,
    })
    expect(await traceOf({ traceparent: TRACEPARENT }, { traceId: TRACE })).to.deep.equal({
      traceId: TRACE,
      spanId: SPAN,
    })
  })

  for (const [title, value] of [
    ['of version 00 with other flags', `00-${TRACE}-${SPAN}-fe`],
    ['of a later version', `cc-${TRACE}-${SPAN}-01`],
    ['of a later version with further fields', `01-${TRACE}-${SPAN}-00-what-the-future-will-be`],
    ['between white space', ` ${TRACEPARENT}\t`],
  ]) {
    it(`is read ${title}`, async () => {
      expect(await traceOf({ traceparent: value! })).to.deep.equal({ traceId: TRACE, spanId: SPAN })
      expect(await ignored()).to.equal(0)
    })
  }

  for (const [title, value] of [
    ['empty', ''],
    ['no such thing', 'trace-1'],
    ['a trace id of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
    ['a parent id of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['upper-case digits', TRACEPARENT.toUpperCase()],
    ['the version ff', `ff-${TRACE}-${SPAN}-01`],
    ['version 00 with further fields', `${TRACEPARENT}-more`],
    ['version 00 with a hyphen at its end', `${TRACEPARENT}-`],
    ['a later version with characters after its flags', `01-${TRACE}-${SPAN}-01x`],
    ['no flags', `00-${TRACE}-${SPAN}`],
    ['a short trace id', `00-${TRACE.slice(1)}-${SPAN}-01`],
    ['very long', `01-${TRACE}-${SPAN}-01${'x'.repeat(8_000)}`],
    ['two in one', `${TRACEPARENT}, ${TRACEPARENT}`],
  ]) {
    it(`is ignored and counted when it is malformed: ${title}`, async () => {
      const trace = await traceOf({ traceparent: value! })
      expect(trace.traceId)
        .to.match(/^[0-9a-f]{32}$/)
        .and.not.equal(TRACE)
      expect(trace.spanId).to.equal(undefined)
      expect(await ignored()).to.equal(1)
    })
  }

  it('is ignored and counted when it comes twice', async () => {
    const headers = new Headers([
      ['x-api-key', member.apiKey],
      ['content-type', 'application/json'],
    ])
    for (const version of ['01', '02']) headers.append('traceparent', `${version}-${TRACE}-${SPAN}-01-x`)
    const response = await fetch(`${api.url}/api/orgs/${member.organisationId}/events`, {
      method: 'POST',
      headers,
      body: JSON.stringify(EVENT),
    })
    expect(response.status).to.equal(202)
    expect(await ignored()).to.equal(1)
  })

  it('makes no other request of a repeat with the same Idempotency-Key', async () => {
    const headers = { 'idempotency-key': 'order-1' }
    const first = await publish({ ...headers, traceparent: TRACEPARENT })
    for (const repeat of [
      { traceparent: `00-${'a'.repeat(32)}-${SPAN}-00` },
      { traceparent: 'malformed' },
      {},
    ]) {
      const answer = await publish({ ...headers, ...repeat })
      expect({ status: answer.status, text: answer.text }).to.deep.equal({ status: 202, text: first.text })
    }
    const [{ count } = { count: 0 }] = await database.dataSource.query<{ count: number }[]>(
      'SELECT count(*)::int AS count FROM event WHERE organisation_id = $1',
      [member.organisationId],
    )
    expect(count).to.equal(1)
  })

  it('is in the log line of the request, also of one that is refused', async () => {
    await publish({ traceparent: TRACEPARENT })
    expect(lines.at(-1)).to.include({ event: 'http.answered', status: 202, traceId: TRACE, spanId: SPAN })
    await publish({ traceparent: TRACEPARENT }, { data: {} })
    expect(lines.at(-1)).to.include({ event: 'http.answered', status: 422, traceId: TRACE, spanId: SPAN })
  })

  it('is not needed for a trace in the log line: what the body gives or Posthorn makes is there', async () => {
    await publish({}, { traceId: 'own-trace', spanId: 'own-span' })
    expect(lines.at(-1)).to.include({ traceId: 'own-trace', spanId: 'own-span' })
    const { traceId } = await traceOf({})
    expect(lines.at(-1)).to.include({ traceId, spanId: undefined })
    await api.call('GET', '/healthz', { headers: { traceparent: TRACEPARENT } })
    expect(lines.at(-1)).to.include({ path: '/healthz', traceId: undefined })
  })

  it('leads to the log line of each attempt, and sends receivers nothing that they did not get before', async () => {
    const { organisationId } = member
    await createWebhookRow(database.dataSource, { organisationId, url: receiver.url })
    const byHeader = await publishedEnvelope({
      traceparent: TRACEPARENT,
      tracestate: 'vendor=1',
      baggage: 'a=b',
    })
    const byBody = await publishedEnvelope({}, { traceId: TRACE, spanId: SPAN })
    expect(byHeader).to.equal(byBody)
    const dependencies = { ...attemptDependencies(database.dataSource), logger }
    for (const delivery of api.started)
      await createAttempt(dependencies)(attemptRequest(delivery), NO_SIGNALS)
    await dependencies.httpClient.close()

    expect(receiver.posts.map(({ body }) => body.toString())).to.deep.equal([byBody, byBody])
    const [ofHeader, ofBody] = receiver.posts.map(({ rawHeaders }) =>
      rawHeaders.filter((_, at) => at % 2 === 0),
    )
    expect(ofHeader).to.deep.equal(ofBody)
    expect(ofHeader!.map((name) => name.toLowerCase())).to.have.members([
      ...['host', 'connection', 'user-agent', 'content-type', 'content-length'],
      ...['x-webhook-event-id', 'x-webhook-signature'],
    ])
    const attempted = lines.filter(({ event }) => event === 'delivery.attempted')
    expect(attempted.map(({ traceId }) => traceId)).to.deep.equal([TRACE, TRACE])
  })
})

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import type { InMemorySpanExporter, ReadableSpan } from '@opentelemetry/sdk-trace-node'
import { expect } from 'chai'
import { createAttempt } from '../../../src/deliveries/attempt/make-attempt.ts'
import { flushSpans } from '../../../src/observability/tracing.ts'
import { createHttpClient } from '../../../src/outbound/http-client.ts'
import { createTestApi, type TestApi } from '../../helpers/api/api.ts'
import { createMember, createWebhookRow, type TestMember } from '../../helpers/database/factories.ts'
import { attemptRequest, NO_SIGNALS } from '../../helpers/deliveries/attempts.ts'
import { setRow } from '../../helpers/deliveries/set-row.ts'
import { useAttempts } from '../../helpers/deliveries/use-attempts.ts'
import { codeBlocksOf, readDocument } from '../../helpers/documents/documents.ts'
import { eventually } from '../../helpers/eventually.ts'
import { createCertificate, createReceiver } from '../../helpers/receivers/receiver.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'
const NODE_MODULES = fileURLToPath(new URL('../../../node_modules', import.meta.url))

/** Runs the file of docs/production.md that loads an SDK, with an exporter that keeps the spans in memory. */
async function loadDocumentedSdk(folder: string): Promise<InMemorySpanExporter> {
  const block = codeBlocksOf(readDocument('docs/production.md')).find(({ language }) => language === 'js')
  const inMemory = `import { InMemorySpanExporter as OTLPTraceExporter } from '@opentelemetry/sdk-trace-node'`
  const text = block!.text.replace(/^import \{ OTLPTraceExporter \}.*$/m, inMemory)
  expect(text).to.include(inMemory)
  const file = join(folder, 'register.mjs')
  symlinkSync(NODE_MODULES, join(folder, 'node_modules'))
  writeFileSync(file, `${text}\nexport { exporter }\n`)
  return ((await import(pathToFileURL(file).href)) as { exporter: InMemorySpanExporter }).exporter
}

describe('traces', () => {
  const suite = useAttempts()
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-traces-'))
  let exporter: InMemorySpanExporter
  let api: TestApi
  let member: TestMember

  before(async () => {
    exporter = await loadDocumentedSdk(folder)
  })
  after(() => {
    trace.disable()
    context.disable()
    propagation.disable()
    rmSync(folder, { recursive: true })
  })
  beforeEach(async () => {
    await flushSpans()
    exporter.reset()
    api = await createTestApi(suite.database.dataSource)
    member = await createMember(suite.database.dataSource)
  })
  afterEach(() => api.close())

  async function spans(): Promise<ReadableSpan[]> {
    await flushSpans()
    return exporter.getFinishedSpans()
  }
  const only = async (): Promise<ReadableSpan> => {
    const [span, ...others] = await spans()
    expect(others).to.deep.equal([])
    return span!
  }
  const addWebhook = (url = suite.receiver.url) =>
    createWebhookRow(suite.database.dataSource, { organisationId: member.organisationId, url })
  const publish = (headers: Record<string, string>, more: object = {}) =>
    api.call('POST', `/api/orgs/${member.organisationId}/events`, {
      apiKey: member.apiKey,
      headers,
      body: { event: 'customer:created', data: { id: 'cus_1' }, ...more },
    })
  const envelopeOf = async (eventId: string): Promise<{ traceId: string; spanId?: string }> => {
    const [row] = await suite.database.dataSource.query<{ body: Buffer }[]>(
      'SELECT body FROM event WHERE id = $1',
      [eventId],
    )
    return JSON.parse(row!.body.toString()) as { traceId: string; spanId?: string }
  }
  const makeDue = (deliveryId: string, attempts: number) =>
    setRow(suite.database.dataSource, deliveryId, { state: 'waiting', attempts, dueInMs: 0 })
  /** Publishes one event to one webhook, and makes its first attempts. */
  async function attempts(count: number, headers: Record<string, string>, url?: string, more?: object) {
    await addWebhook(url)
    expect((await publish(headers, more)).status).to.equal(202)
    const [delivery] = api.started
    for (let number = 1; number <= count; number++) {
      if (number > 1) await makeDue(delivery!.deliveryId, number - 1)
      await suite.attempt(delivery!, { number, queue: number === 1 ? 'first' : 'retry' })
    }
    const all = await spans()
    return { delivery: delivery!, made: all.filter(({ kind }) => kind === SpanKind.CLIENT) }
  }

  describe('of publishing', () => {
    it('have a span below the one of traceparent, which names the event and its organisation', async () => {
      await addWebhook()
      const { json } = await publish({ traceparent: `00-${TRACE}-${SPAN}-01` })
      const { id } = json as { id: string }
      const span = await only()
      expect(span).to.include({ name: 'publish customer:created', kind: SpanKind.PRODUCER })
      expect(span.parentSpanContext).to.include({ traceId: TRACE, spanId: SPAN })
      expect(span.attributes).to.deep.equal({
        'messaging.system': 'posthorn',
        'messaging.operation.name': 'publish',
        'messaging.operation.type': 'send',
        'messaging.destination.name': 'customer:created',
        'messaging.message.id': id,
        'posthorn.organisation.id': member.organisationId,
        'posthorn.deliveries': 1,
      })
      expect(await envelopeOf(id)).to.include({ traceId: TRACE, spanId: SPAN })
    })

    it('begin a trace, which is the one of the event, where the request belongs to none', async () => {
      const { json } = await publish({})
      const span = await only()
      expect(span.parentSpanContext).to.equal(undefined)
      const { traceId, spanId } = span.spanContext()
      expect(await envelopeOf((json as { id: string }).id)).to.include({ traceId, spanId })
    })

    it('are below the span that the body names', async () => {
      await publish({}, { traceId: TRACE, spanId: SPAN })
      expect((await only()).parentSpanContext).to.include({ traceId: TRACE, spanId: SPAN })
    })

    it('change nothing of ids that are no trace of W3C, and begin a trace of their own', async () => {
      const { json } = await publish({}, { traceId: 'order-1' })
      expect((await only()).parentSpanContext).to.equal(undefined)
      expect(await envelopeOf((json as { id: string }).id))
        .to.include({ traceId: 'order-1' })
        .and.not.have.property('spanId')
    })

    it('have no span where the caller does not record its trace, and the event its ids', async () => {
      const { json } = await publish({ traceparent: `00-${TRACE}-${SPAN}-00` })
      expect(await spans()).to.deep.equal([])
      expect(await envelopeOf((json as { id: string }).id)).to.include({ traceId: TRACE, spanId: SPAN })
    })

    it('end with an error where the event is not committed', async () => {
      const failing = Object.assign(() => Promise.reject(new TypeError('no database')), {
        isFailing: () => false,
      })
      const broken = await createTestApi(suite.database.dataSource, { publish: failing })
      const path = `/api/orgs/${member.organisationId}/events`
      const body = { event: 'customer:created', data: { id: 'cus_1' } }
      expect((await broken.call('POST', path, { apiKey: member.apiKey, body })).status).to.equal(500)
      await broken.close()
      const span = await only()
      expect(span.status.code).to.equal(SpanStatusCode.ERROR)
      expect(span.attributes).to.include({ 'error.type': 'TypeError' })
    })
  })

  describe('of attempts', () => {
    it('have a span below the one of the event, with all ids and the outcome, and no secret of the URL', async () => {
      const url = `${suite.receiver.url}/T0123456789abcdef?key=secret`
      const { delivery, made } = await attempts(1, { traceparent: `00-${TRACE}-${SPAN}-01` }, url)
      expect(made).to.have.length(1)
      const [span] = made
      expect(span!.name).to.equal('POST')
      expect(span!.parentSpanContext).to.include({ traceId: TRACE, spanId: SPAN })
      expect(span!.links).to.deep.equal([])
      const { hostname, port, origin } = new URL(url)
      expect(span!.attributes).to.deep.equal({
        'http.request.method': 'POST',
        'http.response.status_code': 200,
        'network.protocol.version': '1.1',
        'server.address': hostname,
        'server.port': Number(port),
        'url.full': `${origin}/hook/T0…`,
        'posthorn.organisation.id': member.organisationId,
        'posthorn.webhook.id': delivery.webhookId,
        'posthorn.delivery.id': delivery.deliveryId,
        'posthorn.event.key': 'customer:created',
        'posthorn.event.trace_id': TRACE,
        'posthorn.attempt.number': 1,
        'posthorn.attempt.outcome': 'succeeded',
      })
    })

    it('are below the span of publishing where that began the trace', async () => {
      await attempts(1, {})
      const [published, attempted] = await spans()
      expect(attempted!.parentSpanContext!.spanId).to.equal(published!.spanContext().spanId)
      expect(attempted!.spanContext().traceId).to.equal(published!.spanContext().traceId)
    })

    it('link a retry to the first attempt, and count it', async () => {
      suite.answerWith((index) => (index < 2 ? 503 : 200))
      const { made } = await attempts(3, { traceparent: `00-${TRACE}-${SPAN}-01` })
      const [first, ...retries] = made
      expect(first!.attributes).to.include({ 'error.type': '503', 'posthorn.attempt.outcome': 'failed' })
      expect(first!.status.code).to.equal(SpanStatusCode.ERROR)
      const { spanId } = first!.spanContext()
      expect(retries.map(({ links }) => links.map((link) => link.context.spanId))).to.deep.equal([
        [spanId],
        [spanId],
      ])
      expect(retries.map(({ attributes }) => attributes['http.request.resend_count'])).to.deep.equal([1, 2])
      expect(new Set(made.map((span) => span.spanContext().traceId))).to.deep.equal(new Set([TRACE]))
    })

    it('link a retry of what another process attempted first to the span of the event', async () => {
      const { delivery } = await suite.publish()
      await suite.database.dataSource.query(
        `UPDATE event SET trace_id = $1, body = $2 WHERE organisation_id = $3`,
        [TRACE, `{"traceId":"${TRACE}","spanId":"${SPAN}"}`, delivery.organisationId],
      )
      await makeDue(delivery.deliveryId, 1)
      await suite.attempt(delivery, { number: 2, queue: 'retry' })
      const span = await only()
      expect(span.links.map((link) => link.context.spanId)).to.deep.equal([SPAN])
    })

    it('begin a trace of their own, which names the one of the event, where that is no trace of W3C', async () => {
      const { made } = await attempts(1, {}, undefined, { traceId: 'order-1', spanId: 'step-1' })
      expect(made[0]!.parentSpanContext).to.equal(undefined)
      expect(made[0]!.attributes).to.include({ 'posthorn.event.trace_id': 'order-1' })
    })

    it('tell how a new connection was made, in order, and nothing for one that is used again', async () => {
      const certificate = await createCertificate()
      const receiver = await createReceiver({ tls: certificate })
      const httpClient = createHttpClient({
        allowHttp: false,
        allowedCidrs: ['127.0.0.0/8'],
        timeoutMs: 10_000,
        ca: certificate.cert,
        poolLimits: { restMs: 0, restRoundTrips: 0 },
      })
      const makeAttempt = createAttempt({ ...suite.dependencies, httpClient })
      await addWebhook(receiver.url)
      for (let count = 0; count < 2; count++) await publish({})
      for (const delivery of api.started) await makeAttempt(attemptRequest(delivery), NO_SIGNALS)
      await httpClient.close()
      await receiver.close()
      const [first, second] = (await spans()).filter(({ kind }) => kind === SpanKind.CLIENT)
      const names = ['dns.resolved', 'connection.opened', 'tls.established']
      expect(first!.events.map(({ name }) => name)).to.deep.equal(names)
      const ms = ([seconds, nanoseconds]: [number, number]): number => seconds * 1e3 + nanoseconds / 1e6
      const times = [first!.startTime, ...first!.events.map(({ time }) => time), first!.endTime].map(ms)
      expect(times).to.deep.equal([...times].sort((a, b) => a - b))
      expect(second!.events).to.deep.equal([])
    })

    it('end where the endpoint refuses the connection, and where the process cuts the POST off', async () => {
      const closed = await createReceiver()
      await closed.close()
      const refused = await attempts(1, {}, closed.url)
      expect(refused.made[0]!.attributes).to.include({ 'error.type': 'connect_refused' })
      exporter.reset()

      const { delivery } = await suite.publish()
      suite.answerWith(() => null)
      const cutOff = new AbortController()
      const cut = createAttempt(suite.dependencies)(attemptRequest(delivery), {
        ...NO_SIGNALS,
        shutDown: cutOff.signal,
      }).catch((error: unknown) => error)
      await eventually(() => expect(suite.receiver.posts).to.have.length(1))
      cutOff.abort(new Error('the process ends'))
      expect(await cut).to.be.instanceOf(Error)
      expect((await only()).attributes).to.include({ 'posthorn.attempt.outcome': 'cut_off' })
    })

    it('send receivers nothing, also where an instrumentation adds headers to requests of undici', async () => {
      const added: string[] = []
      const seen: unknown[] = []
      const instrument = (message: unknown): void => {
        seen.push(message)
        const carrier: Record<string, string> = {}
        propagation.inject(context.active(), carrier)
        added.push(...Object.keys(carrier))
      }
      subscribe('undici:request:create', instrument)
      await attempts(1, { traceparent: `00-${TRACE}-${SPAN}-01` })
      unsubscribe('undici:request:create', instrument)
      expect(seen).to.not.be.empty
      expect(added).to.deep.equal([])
      const [post] = suite.receiver.posts
      expect(Object.keys(post!.headers)).to.have.members([
        ...['host', 'connection', 'user-agent', 'content-type', 'content-length'],
        ...['x-webhook-event-id', 'x-webhook-signature'],
      ])
    })
  })
})

import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import ajvFormats from 'ajv-formats'
import { expect } from 'chai'
import { createDataSource } from '../../../src/db/connection/data-source.ts'
import { createRateLimits } from '../../../src/http/limits/rate-limits.ts'
import { routes } from '../../../src/http/routes/index.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { asOperator, SAME_ORIGIN, tokenOf } from '../../helpers/api/operator.ts'
import { visitHold, visitOperatorApi, visitOwnApiKeys, visitReplays } from '../../helpers/api/tour.ts'
import { type ApiResponse, type CallOptions, createTestApi, type TestApi } from '../../helpers/api/api.ts'
import {
  createMember,
  createWebhookRow,
  TEST_VAPID_PUBLIC_KEY,
  type TestMember,
} from '../../helpers/database/factories.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'
import { useDatabase } from '../../helpers/database/database.ts'
import { attempt } from '../deliveries/delivery-rows.ts'

type Response = {
  $ref?: string
  content?: Record<string, { schema: object }>
  headers?: Record<string, unknown>
}
type Operation = {
  operationId: string
  security: object[]
  parameters?: { name: string; in: string }[]
  requestBody?: object
  responses: Record<string, Response>
}
type Document = {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: object; responses: Record<string, Response> }
}

const witnesses = { logger: silentLogger, metrics: createMetrics() }

/** Limits that no test here reaches, so that every answer has the headers it can have. */
const limits = {
  rateLimits: createRateLimits({ management: 1_000, publish: 1_000, authFailures: 0, open: 0 }, witnesses),
}

const OPEN_LINK = '/api/session/portal-link'

describe('/openapi.json', () => {
  const database = useDatabase()
  let api: TestApi
  let member: TestMember
  let document: Document

  before(async () => {
    api = await createTestApi(database.dataSource, limits)
    member = await createMember(database.dataSource)
    document = (await api.call('GET', '/openapi.json')).json as Document
  })
  after(() => api.close())

  const documented = (): [path: string, method: string, Operation][] =>
    Object.entries(document.paths).flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, operation]): [string, string, Operation] => [
        path,
        method,
        operation,
      ]),
    )

  it('documents the limits of every route: by address, and by key where the route asks for one', () => {
    for (const [path, method, { security, responses }] of documented()) {
      const at = `${method} ${path}`
      const isLimited = security.length > 0
      const isProbe = path === '/healthz' || path === '/readyz'
      expect('429' in responses, at).to.equal(!isProbe)
      for (const [status, { headers = {} }] of Object.entries(responses))
        if (/^2/.test(status))
          expect(Object.keys(headers).includes('RateLimit'), `${at} ${status}`).to.equal(isLimited)
    }
  })

  it('is valid OpenAPI 3.1', async () => {
    const { valid, errors } = await new Validator().validate(structuredClone(document))
    expect(valid, JSON.stringify(errors)).to.equal(true)
  })

  it('documents every served route, and no other', () => {
    const served = routes.map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`)
    expect(documented().map(([path, method]) => `${method.toUpperCase()} ${path}`)).to.have.members(served)
  })

  it('names every operation once', () => {
    const ids = documented().map(([, , { operationId }]) => operationId)
    expect(new Set(ids).size).to.equal(ids.length)
  })

  it('declares every parameter of its paths', () => {
    for (const [path, method, { parameters = [] }] of documented()) {
      const declared = parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name)
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
      expect(declared, `${method} ${path}`).to.have.members(inPath)
    }
  })

  it('declares the query parameters of every route that has any, with their defaults', () => {
    for (const { method, path, query } of routes) {
      const { parameters = [] } = document.paths[path.replaceAll(/:(\w+)/g, '{$1}')]![method.toLowerCase()]!
      const declared = parameters.filter((parameter) => parameter.in === 'query').map(({ name }) => name)
      expect(declared, `${method} ${path}`).to.have.members(Object.keys(query?.properties ?? {}))
    }
    const list = document.paths['/api/orgs/{orgId}/webhooks/{id}/deliveries']!['get']!
    const limit = list.parameters!.find(({ name }) => name === 'limit')
    expect(limit).to.deep.include({ in: 'query', required: false })
    expect(limit).to.have.property('schema').that.includes({ minimum: 1, maximum: 100, default: 50 })
  })

  it('requires a key wherever the API does', async () => {
    for (const [path, method, { security }] of documented()) {
      const { status } = await api.call(method.toUpperCase(), path.replaceAll(/\{\w+\}/g, 'x'))
      expect(security.length > 0, `${method} ${path}`).to.equal(status === 401)
    }
  })

  it('describes every answer of a tour of the API', async () => {
    const ajv = new Ajv2020({ strict: false, allErrors: true })
    ajvFormats.default(ajv)
    ajv.addSchema({ $id: 'openapi.json', ...document })
    const seen = new Set<string>()

    for (const [method, path, template, answer] of await tour()) {
      const at = `${method} ${template} ${answer.status}`
      const stated = document.paths[template]?.[method.toLowerCase()]?.responses[answer.status]
      expect(stated, at).to.not.equal(undefined)
      const name = stated!.$ref?.replace('#/components/responses/', '')
      const response = name === undefined ? stated : document.components.responses[name]
      seen.add(at)
      for (const header of Object.keys(response!.headers ?? {})) {
        expect(answer.headers.get(header), `${at} ${header}`).to.be.a('string')
      }
      if (response!.content === undefined) {
        expect(answer.text, at).to.equal('')
        continue
      }
      const type = answer.headers.get('content-type')?.split(';')[0] ?? ''
      expect(response!.content, `${at} ${path}`).to.have.property(type)
      const place =
        name === undefined
          ? ['paths', template, method.toLowerCase(), 'responses', String(answer.status)]
          : ['components', 'responses', name]
      const pointer = [...place, 'content', type]
      const escaped = pointer.map((part) =>
        encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1')),
      )
      const validate = ajv.compile({ $ref: `openapi.json#/${escaped.join('/')}/schema` })
      expect(
        validate(answer.json ?? answer.text),
        `${at} ${JSON.stringify(validate.errors)} ${answer.text}`,
      ).to.equal(true)
    }

    const successes = documented().map(([path, method, { responses }]) =>
      Object.keys(responses)
        .filter((status) => status.startsWith('2'))
        .map((status) => `${method.toUpperCase()} ${path} ${status}`),
    )
    expect([...seen]).to.include.members(successes.flat())
  })

  type Visit = [method: string, path: string, template: string, answer: ApiResponse]

  /** Every success the API has, and one refusal of every kind. */
  async function tour(): Promise<Visit[]> {
    const visits: Visit[] = []
    const away = createDataSource({ url: database.url, poolSize: 1 })
    const apiWithoutDatabase = await createTestApi(away)
    const apiWithoutPush = await createTestApi(database.dataSource, { ...limits, vapidPublicKey: null })
    const strictApi = await createTestApi(database.dataSource, {
      rateLimits: createRateLimits({ management: 2, publish: 1, authFailures: 1, open: 0 }, witnesses),
      webhooksPerOrganisation: 0,
      keptDays: 0,
    })
    const [busyApi, fullApi] = await Promise.all(
      [
        { perKey: 0, perProcess: 1 },
        { perKey: 1, perProcess: 0 },
      ].map((streams) => createTestApi(database.dataSource, limits, { limits: streams })),
    )
    async function visit(
      method: string,
      template: string,
      options: CallOptions & {
        on?: TestApi
        id?: string
        deliveryId?: string
        jobId?: string
        query?: string
        orgId?: string
        memberId?: string
      } = {},
    ) {
      const { on = api, id = '', deliveryId = '', jobId = id, query = '' } = options
      const { orgId = member.organisationId, memberId = member.memberId } = options
      const path = template
        .replace('{orgId}', orgId)
        .replace('{memberId}', memberId)
        .replace('{deliveryId}', deliveryId)
        .replace('{jobId}', jobId)
        .replace(/\{\w+\}/, id)
      const answer = await on.call(method, path + query, { apiKey: member.apiKey, ...options })
      visits.push([method, path, template, answer])
      return answer.json as { id: string }
    }
    const [webhooks, events] = ['/api/orgs/{orgId}/webhooks', '/api/orgs/{orgId}/events']
    const webhook = `${webhooks}/{id}`
    const body = { url: 'https://receiver.example.com/', subscribedEventKeys: ['*'], enabled: true }
    const poor = await createMember(database.dataSource, {
      organisationId: member.organisationId,
      permissions: ['webhook:manage', 'webhook:read'],
    })
    const live = await createWebhookRow(database.dataSource, {
      organisationId: member.organisationId,
      url: body.url,
    })

    const { id } = await visit('POST', webhooks, { body })
    await visit('POST', webhooks, { body, on: strictApi })
    await visit('POST', webhooks, { body: {} })
    await visit('POST', webhooks, { raw: '{' })
    await visit('POST', webhooks, { raw: 'x', headers: { 'content-type': 'text/plain' } })
    await visit('POST', webhooks, { raw: 'x'.repeat(70_000) })
    await visit('POST', webhooks, { body, apiKey: poor.apiKey })
    await visit('GET', webhooks)
    await visit('GET', webhooks, { apiKey: 'nobody' })
    await visit('GET', webhooks, { on: apiWithoutDatabase })
    for (const one of [id, 'unknown']) await visit('GET', webhook, { id: one })
    await visit('PATCH', webhook, { id, body: { enabled: false } })
    await visit('PATCH', webhook, { id, body: {} })
    await visit('GET', `${webhook}/signing-secret`, { id })
    await visit('GET', `${webhook}/signing-secret`, { id, apiKey: poor.apiKey })
    const event = await visit('POST', events, { body: { event: 'comment:created', data: { text: 'x' } } })
    await visit('POST', events, { body: { event: 'nope', data: {} } })
    for (const apiKey of [member.apiKey, 'nobody']) {
      await visit('POST', events, { apiKey, body: {}, on: strictApi })
      await visit('POST', events, { apiKey, body: {}, on: strictApi })
    }
    for (const one of [event.id, 'unknown']) await visit('GET', `${events}/{eventId}`, { id: one })
    await visit('GET', events)
    await visit('GET', events, { query: '?search=%00' })
    const stream = `${events}/stream`
    await visit('GET', stream)
    await visit('GET', stream, { query: '?events=nope' })
    await visit('GET', stream, { query: '?events=invoice:paid', apiKey: poor.apiKey })
    await visit('GET', stream, { on: busyApi! })
    await visit('GET', stream, { on: fullApi! })
    await visit('POST', `${stream}-tickets`)
    const { deliveryId } = api.started.at(-1)!
    const deliveries = { list: `${webhook}/deliveries`, one: `${webhook}/deliveries/{deliveryId}` }
    await visit('GET', `${webhooks}/delivery-stats`)
    await visit('GET', `${webhooks}/recent-deliveries`)
    await visit('GET', `${webhooks}/overview`)
    await visit('GET', deliveries.list, { id: live.id })
    await visit('GET', deliveries.list, { id: live.id, query: '?limit=0' })
    await visit('GET', deliveries.list, { id: live.id, query: '?cursor=x' })
    await visit('GET', deliveries.one, { id: live.id, deliveryId })
    await visit('GET', deliveries.one, { id: live.id, deliveryId, apiKey: poor.apiKey })
    await visit('GET', `${deliveries.one}/request`, { id: live.id, deliveryId })
    await visit('GET', `${deliveries.one}/request`, { id: live.id, deliveryId, apiKey: poor.apiKey })
    await visit('POST', `${deliveries.one}/retry`, { id: live.id, deliveryId })
    await visit('POST', `${deliveries.one}/discard`, { id: live.id, deliveryId })
    await attempt(database.dataSource, api.started.at(-1)!, 1)
    await visit('GET', deliveries.one, { id: live.id, deliveryId })
    await visit('GET', `${webhooks}/delivery-stats`)
    await visit('GET', `${webhooks}/overview`)
    await visit('GET', `${webhooks}/activity`)
    for (const one of [live.id, 'unknown']) await visit('GET', `${webhook}/activity`, { id: one })
    const job = await visit('POST', `${webhooks}/retry-deliveries`, { body: { mode: 'force' } })
    await visit('GET', `${webhooks}/retry-deliveries`)
    await visit('GET', `${webhooks}/retry-deliveries`, { query: '?limit=0' })
    await visit('GET', `${webhooks}/retry-deliveries/{jobId}`, { id: job.id })
    await visitReplays(visit, live.id)
    await visit('POST', `${deliveries.one}/discard`, { id: live.id, deliveryId })
    await visit('POST', `${webhook}/discard-failed`, { id: live.id })
    await visitHold(visit, live.id)
    await visit('POST', `${webhook}/discard`, { id: live.id, body: { deliveryIds: [deliveryId] } })
    await visit('POST', `${webhook}/discard`, { id: live.id, body: {} })
    await visit('POST', `${webhook}/discard`, { id, body: { filter: { state: 'failed' } } })
    for (const id of [event.id, 'unknown']) await visit('DELETE', `${events}/{eventId}/payload`, { id })
    await visit('GET', `${events}/{eventId}`, { id: event.id })
    await visit('GET', deliveries.one, { id: live.id, deliveryId })
    await visit('POST', `${deliveries.one}/retry`, { id: live.id, deliveryId })
    await visit('GET', `${deliveries.one}/request`, { id: live.id, deliveryId })
    await visit('POST', `${webhook}/test`, { id: live.id })
    await visit('POST', `${webhook}/test`, { id })
    for (const one of [id, id]) await visit('DELETE', webhook, { id: one })
    const refused = await api.call('PUT', webhook.replace('{orgId}', 'x').replace('{id}', id))
    visits.push(['GET', webhook, webhook, refused])
    await notifiedIncident(live.id)
    await visit('GET', `${webhook}/incidents`, { id: live.id })
    await visit('GET', `${webhook}/incidents`, { id })
    const subscriptions = '/api/orgs/{orgId}/push-subscriptions'
    const keys = { p256dh: TEST_VAPID_PUBLIC_KEY, auth: 'A'.repeat(22) }
    const browser = { endpoint: 'https://push.example.com/send/abc', expirationTime: null, keys }
    const subscribed = await visit('POST', subscriptions, { body: browser })
    await visit('POST', subscriptions, { body: browser })
    await visit('POST', subscriptions, { body: { keys } })
    await visit('POST', subscriptions, { body: browser, on: apiWithoutPush })
    await visit('GET', subscriptions)
    await visit('GET', subscriptions, { on: apiWithoutPush })
    await visit('DELETE', `${subscriptions}/{id}`, { id: subscribed.id })
    await visit('DELETE', `${subscriptions}/{id}`, { id: subscribed.id })
    await visit('DELETE', subscriptions)
    await visit('GET', '/api/orgs/{orgId}/audit')
    for (const method of ['POST', 'GET', 'DELETE']) await visit(method, '/api/session')
    await visit('POST', '/api/session', { apiKey: 'nobody' })
    const links = '/api/operator/organisations/{orgId}/members/{memberId}/portal-links'
    const link = await visit('POST', links, { id: member.memberId, ...asOperator('portal', { body: {} }) })
    const token = tokenOf({ json: link })
    for (const on of [api, api, strictApi])
      await visit('POST', OPEN_LINK, { on, headers: SAME_ORIGIN, body: { token } })
    await visit('POST', OPEN_LINK, { body: { token } })
    await visit('GET', '/api/event-keys')
    await visit('GET', '/api/event-keys', { apiKey: 'nobody' })
    await visitOperatorApi(visit)
    await visitOwnApiKeys(visit)
    for (const path of ['/healthz', '/readyz', '/openapi.json']) await visit('GET', path)
    await visit('GET', '/readyz', { on: apiWithoutDatabase })
    for (const one of [apiWithoutDatabase, apiWithoutPush, strictApi, busyApi!, fullApi!]) await one.close()
    return visits
  }

  /** An incident with every field set, and a notification. */
  async function notifiedIncident(webhookId: string): Promise<void> {
    await database.dataSource.query(
      `WITH incident AS (
         INSERT INTO incident (id, organisation_id, webhook_id, exhausted_at, closed_at)
         VALUES (gen_random_uuid(), $1, $2, now(), now()) RETURNING id
       )
       INSERT INTO notification (id, incident_id, kind, channel, recipient, state, sent_at)
       SELECT gen_random_uuid(), id, 1, 'email', 'info@test.example', 'sent', now() FROM incident`,
      [member.organisationId, webhookId],
    )
  }
})

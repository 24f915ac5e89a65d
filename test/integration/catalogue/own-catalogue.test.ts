import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import type { Catalogue } from '../../../src/catalogue/catalogue.ts'
import { parseCatalogue } from '../../../src/catalogue/parse-catalogue.ts'
import { cookieOf, createTestApi, type ApiResponse, type TestApi } from '../../helpers/api/api.ts'
import {
  createMember,
  createWebhookRow,
  publishRow,
  type TestMember,
} from '../../helpers/database/factories.ts'
import { useDatabase } from '../../helpers/database/database.ts'
import { eventually } from '../../helpers/eventually.ts'
import { readStream } from '../../helpers/stream/stream-reader.ts'

const SHIPPED = 'order:shipped'
const SALARY = 'salary:payout-changed'
const CACHE = 'cache:expired'
/** Of the built-in catalogue, which this one replaces. */
const GONE = 'invoice:paid'

const catalogue: Catalogue = await parseCatalogue(exampleOfTheDocument())

describe('a catalogue of the operator', () => {
  const database = useDatabase()
  let api: TestApi
  let full: TestMember

  before(async () => {
    api = await createTestApi(database.dataSource, { catalogue })
  })
  after(() => api.close())
  beforeEach(async () => {
    full = await createMember(database.dataSource)
  })

  const member = (...permissions: string[]): Promise<TestMember> =>
    createMember(database.dataSource, { organisationId: full.organisationId, permissions })
  const call = (method: string, path: string, by: TestMember, body?: unknown): Promise<ApiResponse> =>
    api.call(method, `/api/orgs/${by.organisationId}${path}`, { apiKey: by.apiKey, body })
  const signIn = async (apiKey: string): Promise<string> => {
    const answer = await api.call('POST', '/api/session', { apiKey })
    expect(answer.status, answer.text).to.equal(200)
    return cookieOf(answer)
  }
  const publish = (event: string, data: unknown = {}): Promise<ApiResponse> =>
    call('POST', '/events', full, { event, data })
  const webhook = (subscribedEventKeys: string[], by = full): Promise<ApiResponse> =>
    call('POST', '/webhooks', by, { url: 'https://a.example.com/hook', subscribedEventKeys, enabled: true })
  const webhookRow = async (...subscribedEventKeys: string[]): Promise<string> => {
    const { organisationId } = full
    const url = 'https://a.example.com/hook/k7Qz91TpXw42'
    return (await createWebhookRow(database.dataSource, { organisationId, url, subscribedEventKeys })).id
  }

  it('is what GET /api/event-keys lists, with schema and example', async () => {
    const { status, json } = await api.call('GET', '/api/event-keys', { apiKey: full.apiKey })
    expect(status).to.equal(200)
    expect((json as { data: unknown }).data).to.deep.equal(JSON.parse(JSON.stringify(catalogue.eventKeys)))
  })

  it('is what the OpenAPI document names to callers with a valid key or session', async () => {
    const cookie = await signIn(full.apiKey)
    for (const known of [{ apiKey: full.apiKey }, { headers: { cookie } }]) {
      const { json } = await api.call('GET', '/openapi.json', known)
      const { webhooks } = json as { webhooks: object }
      expect(Object.keys(webhooks)).to.have.members([SHIPPED, SALARY, CACHE, 'webhook:test'])
    }
  })

  it('is not in the OpenAPI document without a key, which has every route', async () => {
    const whole = await api.call('GET', '/openapi.json', { apiKey: full.apiKey })
    const cookie = `posthorn_session=${'A'.repeat(43)}`
    for (const stranger of [{}, { apiKey: 'k'.repeat(40) }, { headers: { cookie } }]) {
      const { status, text, json } = await api.call('GET', '/openapi.json', stranger)
      expect(status).to.equal(200)
      for (const { key, meaning } of catalogue.eventKeys) {
        expect(text).to.not.include(key)
        expect(text).to.not.include(meaning)
      }
      const { webhooks, paths } = json as { webhooks: object; paths: object }
      expect(Object.keys(webhooks)).to.deep.equal(['webhook:test'])
      expect(Object.keys(paths)).to.deep.equal(Object.keys((whole.json as { paths: object }).paths))
    }
  })

  it('has examples that can all be published, and no key of the built-in catalogue', async () => {
    for (const { key, example } of catalogue.eventKeys)
      expect((await publish(key, example)).status, key).to.equal(202)
    const refused = await publish(GONE)
    expect(errorsOf(refused)).to.deep.equal([[422, '/event', 'unknown_event_key']])
  })

  it('has payloads checked by its schemas, naming every bad field', async () => {
    const refused = await publish(SHIPPED, { orderId: 'x', parcels: [{ grams: 0 }] })
    expect(errorsOf(refused)).to.have.deep.members([
      [422, '/data/orderId', 'wrong_format'],
      [422, '/data/shippedAt', 'required'],
      [422, '/data/parcels/0/tracking', 'required'],
      [422, '/data/parcels/0/grams', 'too_small'],
    ])
  })

  it('has long payloads checked in a thread, naming the first bad field', async () => {
    const parcels = (length: number, parcel: object) => Array.from({ length }, () => parcel)
    const shippedAt = '2026-05-04T08:15:30Z'
    const good = await publish(SHIPPED, {
      orderId: 'ord_1',
      shippedAt,
      parcels: parcels(10_000, { tracking: 'x' }),
    })
    expect(good.status, good.text).to.equal(202)
    const refused = await publish(SHIPPED, {
      orderId: 'ord_1',
      shippedAt,
      parcels: parcels(15_000, { grams: 0 }),
    })
    expect(errorsOf(refused)).to.deep.equal([[422, '/data/parcels/0/tracking', 'required']])
  })

  it('lets webhooks subscribe to its keys, except to those that are not subscribable', async () => {
    expect((await webhook([SHIPPED, SALARY])).status).to.equal(201)
    const refused = await webhook([SHIPPED, CACHE, GONE])
    expect(errorsOf(refused)).to.deep.equal([
      [422, '/subscribedEventKeys/1', 'not_subscribable'],
      [422, '/subscribedEventKeys/2', 'unknown_event_key'],
    ])
    expect(refused.text).to.include(GONE)
  })

  it('has the permission of each key asked for when a webhook subscribes to it', async () => {
    const by = await member('webhook:manage', 'order:read', 'salary:read')
    expect((await webhook([SHIPPED], by)).status).to.equal(201)
    const refused = await webhook([SHIPPED, SALARY], by)
    expect([refused.status, missingOf(refused)]).to.deep.equal([403, ['payroll:read']])
    expect((await webhook([SALARY], await member('webhook:manage', 'payroll:read'))).status).to.equal(201)
  })

  it('shows deliveries, events, secrets and whole URLs to members with the permission of the key only', async () => {
    const id = await webhookRow(SALARY)
    const [delivery] = await publishRow(database.dataSource, full.organisationId, { eventKey: SALARY })
    const detail = `/webhooks/${id}/deliveries/${delivery!.deliveryId}`
    const [without, withIt] = [
      await member('webhook:read', 'webhook:manage', 'salary:read'),
      await member('webhook:read', 'webhook:manage', 'payroll:read'),
    ]
    for (const path of [detail, `/webhooks/${id}/signing-secret`]) {
      const refused = await call('GET', path, without)
      expect([refused.status, missingOf(refused)], path).to.deep.equal([403, ['payroll:read']])
      expect((await call('GET', path, withIt)).status, path).to.equal(200)
    }
    expect((await call('GET', `/webhooks/${id}`, without)).text).to.not.include('k7Qz91TpXw42')
    expect((await call('GET', `/webhooks/${id}`, withIt)).text).to.include('k7Qz91TpXw42')
    const stats = await call('GET', '/webhooks/delivery-stats', without)
    expect(stats.text).to.not.include('cus_1')
  })

  it('has its keys streamed to members with their permission', async () => {
    const { apiKey } = await member('payroll:read')
    const reader = await readStream(api.url, full.organisationId, { apiKey })
    try {
      await publish(SHIPPED, catalogue.find(SHIPPED)?.example)
      await publish(SALARY)
      await eventually(() => expect(reader.events.map(({ event }) => event)).to.deep.equal([SALARY]))
    } finally {
      await reader.close()
    }
    for (const [key, status] of [
      [SALARY, 403],
      [GONE, 422],
    ] as const) {
      const by = await member('order:read', 'salary:read')
      expect((await call('GET', `/events/stream?events=${key}`, by)).status, key).to.equal(status)
    }
  })

  it('has events of keys that only another process knows streamed to members with full access', async () => {
    const { apiKey } = await member('order:read', 'invoice:read')
    const readers = await Promise.all(
      [full.apiKey, apiKey].map((by) => readStream(api.url, full.organisationId, { apiKey: by })),
    )
    try {
      await publishRow(database.dataSource, full.organisationId, { eventKey: GONE })
      await publish(SHIPPED, catalogue.find(SHIPPED)?.example)
      const keys = () => readers.map(({ events }) => events.map(({ event }) => event))
      await eventually(() => expect(keys()).to.deep.equal([[GONE, SHIPPED], [SHIPPED]]))
    } finally {
      await Promise.all(readers.map((reader) => reader.close()))
    }
  })

  it('leaves test events as they are', async () => {
    const by = await member('webhook:read', 'webhook:manage', 'order:read')
    const id = await webhookRow(SHIPPED)
    const sent = await call('POST', `/webhooks/${id}/test`, by)
    expect(sent.status, sent.text).to.equal(202)
    const { deliveryId } = sent.json as { deliveryId: string }
    expect((await call('GET', `/webhooks/${id}/deliveries/${deliveryId}`, by)).status).to.equal(200)
  })

  describe('that lacks a key to which a webhook subscribes', () => {
    it('shows the webhook as it was, its URL to members with full access', async () => {
      const id = await webhookRow(SHIPPED, GONE)
      const by = await member('webhook:read', 'webhook:manage', 'invoice:read', 'order:read')
      for (const path of ['/webhooks', '/webhooks/overview', `/webhooks/${id}`]) {
        const shown = await call('GET', path, by)
        expect(
          [shown.status, shown.text.includes(GONE), shown.text.includes('k7Qz91TpXw42')],
          path,
        ).to.deep.equal([200, true, false])
        expect((await call('GET', path, full)).text, path).to.include('k7Qz91TpXw42')
      }
    })

    it('keeps what waits, and shows its payload to members with full access', async () => {
      const id = await webhookRow(GONE)
      const [delivery] = await publishRow(database.dataSource, full.organisationId, { eventKey: GONE })
      const path = `/webhooks/${id}/deliveries/${delivery!.deliveryId}`
      const refused = await call('GET', path, await member('webhook:read', 'invoice:read'))
      expect([refused.status, missingOf(refused)]).to.deep.equal([403, ['fullAccess']])
      const { status, json } = await call('GET', path, full)
      expect([status, (json as { state: string }).state]).to.deep.equal([200, 'pending'])
      const changed = await call('PATCH', `/webhooks/${id}`, full, { url: 'https://b.example.com/' })
      expect(changed.status, changed.text).to.equal(200)
      expect((await call('GET', path, full)).json).to.include({ state: 'pending' })
    })

    it('lets a PATCH repeat the subscription, and names the key in the answer to one that changes it', async () => {
      const id = await webhookRow(SHIPPED, GONE)
      const repeated = { url: 'https://b.example.com/', subscribedEventKeys: [SHIPPED, GONE] }
      expect((await call('PATCH', `/webhooks/${id}`, full, repeated)).json).to.deep.include(repeated)
      const body = { subscribedEventKeys: [SALARY, GONE] }
      const refused = await call('PATCH', `/webhooks/${id}`, full, body)
      expect(errorsOf(refused)).to.deep.equal([[422, '/subscribedEventKeys/1', 'unknown_event_key']])
      expect(refused.text).to.include(`There is no event key \\"${GONE}\\".`)
    })

    it('lets a member without full access take the key out, and switch the webhook off', async () => {
      const by = await member('webhook:manage')
      const id = await webhookRow(SHIPPED, GONE)
      const off = await call('PATCH', `/webhooks/${id}`, by, { enabled: false })
      expect(off.status, off.text).to.equal(200)
      const reduced = await call('PATCH', `/webhooks/${id}`, by, { subscribedEventKeys: [SHIPPED] })
      expect(reduced.status, reduced.text).to.equal(200)
    })
  })
})

/** The first JSON block of docs/catalogue.md, as its readers would copy it. */
function exampleOfTheDocument(): string {
  const text = readFileSync(new URL('../../../docs/catalogue.md', import.meta.url), 'utf8')
  return /```json\n([\s\S]*?)```/.exec(text)?.[1] ?? ''
}

function errorsOf({ status, json }: ApiResponse): [number, string, string][] {
  const { errors } = json as { errors: { pointer: string; code: string }[] }
  return errors.map(({ pointer, code }) => [status, pointer, code])
}

function missingOf({ json }: ApiResponse): string[] {
  return (json as { missingPermissions: string[] }).missingPermissions
}

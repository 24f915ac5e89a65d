import { expect } from 'chai'
import { Registry } from 'prom-client'
import { createRateLimits } from '../../../src/http/limits/rate-limits.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { createTestApi, type TestApi } from '../../helpers/api/api.ts'
import {
  createMember,
  createWebhookRow,
  publishRow,
  type TestMember,
} from '../../helpers/database/factories.ts'
import { parseExposition, type Exposition } from '../../helpers/metrics/exposition.ts'
import { sendBytes } from '../../helpers/api/raw-request.ts'
import { setRow } from '../../helpers/deliveries/set-row.ts'
import { useDatabase } from '../../helpers/database/database.ts'

describe("the API's metrics", () => {
  const database = useDatabase()
  let member: TestMember
  let registry: Registry
  let api: TestApi

  beforeEach(async () => {
    registry = new Registry()
    api = await createTestApi(database.dataSource, { metrics: createMetrics(registry) })
    member = await createMember(database.dataSource)
  })
  afterEach(() => api.close())

  const counted = async (): Promise<Exposition> => parseExposition(await registry.metrics())
  const webhook = async (subscribedEventKeys = ['*']) =>
    (
      await createWebhookRow(database.dataSource, {
        organisationId: member.organisationId,
        url: 'https://receiver.example.com/hook',
        subscribedEventKeys,
      })
    ).id
  const call = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    api.call(method, `/api/orgs/${member.organisationId}${path}`, {
      apiKey: member.apiKey,
      headers,
      ...(body === undefined ? {} : { body }),
    })
  const publish = (headers = {}) =>
    call('POST', '/events', { event: 'customer:created', data: { id: 'cus_1' } }, headers)
  const stopped = async () => (await counted()).valueOf('posthorn_deliveries_total', { state: 'stopped' })

  /** Deliveries of the webhook in that state. */
  async function deliveries(count: number, state: 'pending' | 'waiting' | 'failed'): Promise<string[]> {
    const ids: string[] = []
    for (let made = 0; made < count; made++)
      ids.push((await publishRow(database.dataSource, member.organisationId))[0]!.deliveryId)
    await setRow(database.dataSource, ids, { state })
    return ids
  }

  it('count an event with its deliveries, and not again when the answer is repeated', async () => {
    await webhook()
    await webhook()
    await webhook(['invoice:paid'])
    await publish()
    const once = { 'idempotency-key': 'order-1' }
    for (let times = 0; times < 3; times++) expect((await publish(once)).status).to.equal(202)
    const { valueOf } = await counted()
    expect(valueOf('posthorn_events_published_total')).to.equal(2)
    expect(valueOf('posthorn_deliveries_committed_total')).to.equal(4)
  })

  it('omit a refused event', async () => {
    await call('POST', '/events', { event: 'no:such', data: {} })
    expect((await counted()).valueOf('posthorn_events_published_total')).to.equal(0)
  })

  it('count a test event', async () => {
    expect((await call('POST', `/webhooks/${await webhook()}/test`)).status).to.equal(202)
    const { valueOf } = await counted()
    expect(valueOf('posthorn_events_published_total')).to.equal(1)
    expect(valueOf('posthorn_deliveries_committed_total')).to.equal(1)
  })

  it('count each delivery that is stopped with its webhook', async () => {
    const [disabled, deleted] = [await webhook(['customer:created']), await webhook([])]
    await deliveries(2, 'pending')
    await deliveries(1, 'waiting')
    await deliveries(4, 'failed')
    expect((await call('PATCH', `/webhooks/${disabled}`, { enabled: false })).status).to.equal(200)
    expect(await stopped()).to.equal(3)
    await call('PATCH', `/webhooks/${disabled}`, { enabled: false })
    expect((await call('DELETE', `/webhooks/${deleted}`)).status).to.equal(204)
    expect(await stopped()).to.equal(3)
  })

  it('count each delivery that a user discards', async () => {
    const id = await webhook()
    const [first] = await deliveries(3, 'failed')
    const discard = () => call('POST', `/webhooks/${id}/deliveries/${first!}/discard`)
    expect((await discard()).status).to.equal(200)
    expect((await discard()).status).to.equal(409)
    expect(await stopped()).to.equal(1)
    expect((await call('POST', `/webhooks/${id}/discard-failed`)).status).to.equal(202)
    expect(await stopped()).to.equal(3)
  })

  it('count each request by the name of its route, and no text of the sender', async () => {
    const id = await webhook()
    await call('GET', `/webhooks/${id}`)
    await call('GET', `/webhooks/${id}?secret=canary`)
    await call('GET', '/webhooks/nonsense-canary')
    await api.call('GET', '/canary')
    await fetch(`${api.url}/healthz`, { method: 'HEAD' })
    await sendBytes(api.url, 'PROPFIND /canary HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
    await sendBytes(api.url, 'GET http://[canary/ HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
    const { valueOf, samples } = await counted()
    const requests = (route: string, method: string, status: string) =>
      valueOf('posthorn_http_requests_total', { route, method, status })
    expect(requests('getWebhook', 'GET', '2xx')).to.equal(1)
    expect(requests('getWebhook', 'GET', '4xx')).to.equal(2)
    expect(requests('getHealth', 'HEAD', '2xx')).to.equal(1)
    expect(requests('none', 'GET', '4xx')).to.equal(2)
    expect(requests('none', 'other', '4xx')).to.equal(1)
    expect(valueOf('posthorn_http_request_duration_seconds_count', { route: 'getWebhook' })).to.equal(3)
    const words = samples.flatMap(({ labels }) => Object.values(labels)).join('\n')
    for (const canary of ['canary', id, member.organisationId]) expect(words).not.to.include(canary)
  })

  it('count each request that a rate limit refused', async () => {
    await api.close()
    registry = new Registry()
    const metrics = createMetrics(registry)
    const settings = { management: 2, publish: 1, authFailures: 1, open: 0 }
    const rateLimits = createRateLimits(settings, { metrics })
    api = await createTestApi(database.dataSource, { metrics, rateLimits })
    for (let times = 0; times < 4; times++) await call('GET', '/webhooks')
    for (let times = 0; times < 2; times++) await publish()
    for (let times = 0; times < 4; times++) await api.call('GET', '/api/event-keys')
    const { valueOf } = await counted()
    const limited = (limit: string) => valueOf('posthorn_rate_limited_total', { limit })
    expect(limited('management')).to.equal(2)
    expect(limited('publish')).to.equal(1)
    expect(limited('authentication')).to.equal(3)
  })
})

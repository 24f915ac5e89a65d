import { expect } from 'chai'
import type { CommittedDelivery } from '../../../src/deliveries/protocol/commit-events.ts'
import { TEST_EVENT_KEY } from '../../../src/domain/permissions.ts'
import {
  createMember,
  createWebhookRow,
  publishRow,
  type TestMember,
} from '../../helpers/database/factories.ts'
import { setRow } from '../../helpers/deliveries/set-row.ts'
import { attempt } from './delivery-rows.ts'
import { useApi } from '../../helpers/api/api.ts'

const url = 'https://receiver.example.com/hook'

describe('GET /webhooks/:id/deliveries/:deliveryId', () => {
  const suite = useApi()
  let member: TestMember

  beforeEach(async () => {
    member = await createMember(suite.database.dataSource)
  })

  const webhookOf = (organisationId: string) =>
    createWebhookRow(suite.database.dataSource, { organisationId, url })

  const get = (webhookId: string, deliveryId: string, apiKey = member.apiKey) =>
    suite.api.call(
      'GET',
      `/api/orgs/${member.organisationId}/webhooks/${webhookId}/deliveries/${deliveryId}`,
      {
        apiKey,
      },
    )

  async function publish(eventKey = 'invoice:paid'): Promise<CommittedDelivery> {
    const [delivery] = await publishRow(suite.database.dataSource, member.organisationId, { eventKey })
    return delivery!
  }

  it('shows the latest hundred attempts of one that was retried more often', async () => {
    const { dataSource } = suite.database
    const webhook = await webhookOf(member.organisationId)
    const delivery = await publish()
    await attempt(dataSource, delivery, 1)
    await dataSource.query(
      `INSERT INTO attempt (delivery_id, webhook_id, number, trigger, url, started_at, duration_ms, outcome,
                            failure_code, status_code, error)
       SELECT delivery_id, webhook_id, later, 'retry', url, started_at, duration_ms, outcome, failure_code,
              status_code, error
         FROM attempt, generate_series(2, 120) AS later WHERE delivery_id = $1`,
      [delivery.deliveryId],
    )
    await setRow(dataSource, delivery.deliveryId, { state: 'failed', attempts: 120 })
    const { json } = await get(webhook.id, delivery.deliveryId)
    const { attempts, attemptCount } = json as { attempts: { number: number }[]; attemptCount: number }
    expect(attemptCount).to.equal(120)
    expect(attempts.map(({ number }) => number)).to.deep.equal(
      Array.from({ length: 100 }, (_, index) => index + 21),
    )
  })

  it('shows the delivery, its payload and every attempt in order', async () => {
    const webhook = await webhookOf(member.organisationId)
    const delivery = await publish()
    await attempt(suite.database.dataSource, delivery, 1, {
      startedAt: new Date('2026-03-01T10:00:00.123Z'),
      durationMs: 34,
      response: {
        headers: { 'content-type': 'text/plain', 'retry-after': '5' },
        body: 'later, ☂',
        truncated: true,
      },
    })
    await attempt(suite.database.dataSource, delivery, 2, {
      trigger: 'retry',
      url: 'https://moved.example.com/',
      startedAt: new Date('2026-03-01T10:00:05.000Z'),
      durationMs: 15_000,
      failureCode: 'timeout',
      statusCode: null,
      error: 'The endpoint did not answer within 15 seconds.',
    })
    await attempt(suite.database.dataSource, delivery, 3, {
      next: 'completed',
      startedAt: new Date('2026-03-01T10:05:00.000Z'),
      statusCode: 204,
      response: { headers: {}, body: '', truncated: false },
    })

    const answer = await get(webhook.id, delivery.deliveryId)
    expect(answer.status, answer.text).to.equal(200)
    const shown = answer.json as Record<string, unknown>
    expect(Object.keys(shown)).to.deep.equal([
      'id',
      'webhookId',
      'eventId',
      'eventKey',
      'traceId',
      'isTest',
      'state',
      'stopReason',
      'attemptCount',
      'nextAttemptAt',
      'pausedSince',
      'createdAt',
      'completedAt',
      'latestAttempt',
      'queue',
      'requestHeaders',
      'payloadErased',
      'payload',
      'attempts',
    ])
    expect(shown).to.include({
      id: delivery.deliveryId,
      webhookId: webhook.id,
      eventKey: 'invoice:paid',
      state: 'completed',
      attemptCount: 3,
      nextAttemptAt: null,
      isTest: false,
      pausedSince: null,
      queue: null,
    })
    const { 'User-Agent': userAgent, ...headers } = shown['requestHeaders'] as Record<string, string>
    expect(userAgent).to.match(/^Posthorn\/\d/)
    expect(headers).to.deep.equal({
      'Content-Type': 'application/json',
      'Content-Length': String(Buffer.byteLength(answer.text.match(/"payload":(\{.*\}),"attempts"/)![1]!)),
      'X-Webhook-Event-ID': delivery.deliveryId,
    })
    expect(shown['payload']).to.include({ event: 'invoice:paid', triggeredBy: null })
    expect(shown['attempts']).to.deep.equal([
      {
        number: 1,
        trigger: 'schedule',
        url,
        startedAt: '2026-03-01T10:00:00.123Z',
        durationMs: 34,
        outcome: 'failed',
        failureCode: 'http_status',
        statusCode: 503,
        error: 'The endpoint answered HTTP 503.',
        response: {
          headers: { 'content-type': 'text/plain', 'retry-after': '5' },
          body: 'later, ☂',
          truncated: true,
        },
      },
      {
        number: 2,
        trigger: 'retry',
        url: 'https://moved.example.com/',
        startedAt: '2026-03-01T10:00:05.000Z',
        durationMs: 15_000,
        outcome: 'failed',
        failureCode: 'timeout',
        statusCode: null,
        error: 'The endpoint did not answer within 15 seconds.',
        response: null,
      },
      {
        number: 3,
        trigger: 'schedule',
        url,
        startedAt: '2026-03-01T10:05:00.000Z',
        durationMs: 12,
        outcome: 'succeeded',
        failureCode: null,
        statusCode: 204,
        error: null,
        response: { headers: {}, body: '', truncated: false },
      },
    ])
  })

  it('shows a delivery that was not attempted yet', async () => {
    const webhook = await webhookOf(member.organisationId)
    const { deliveryId } = await publish()
    const { json } = await get(webhook.id, deliveryId)
    expect(json).to.include({ state: 'pending', attemptCount: 0, nextAttemptAt: null, completedAt: null })
    expect(json).to.have.property('attempts').that.deep.equals([])
  })

  it('says how many wait before it for their first attempt, and whether the endpoint is slow', async () => {
    const webhook = await webhookOf(member.organisationId)
    const queued = [await publish(), await publish(), await publish()]
    await setRow(suite.database.dataSource, queued[0]!.deliveryId, { state: 'pending', workflow: true })
    const queueOf = async ({ deliveryId }: CommittedDelivery) =>
      ((await get(webhook.id, deliveryId)).json as { queue: unknown }).queue
    expect(await queueOf(queued[2]!)).to.deep.equal({ before: 2, isEndpointSlow: false })
    expect(await queueOf(queued[0]!)).to.deep.equal({ before: 0, isEndpointSlow: false })
    await attempt(suite.database.dataSource, await publish(), 1, { startedAt: new Date(), durationMs: 1_500 })
    expect(await queueOf(queued[2]!)).to.deep.equal({ before: 2, isEndpointSlow: true })
  })

  it('shows the payload byte for byte as it is delivered', async () => {
    const webhook = await webhookOf(member.organisationId)
    const data = String.raw`{"id":"cus_1","z":1.0,"a":1e3,"big":12345678901234567890,"nul":"\u0000","emoji":"😀 \ud83d\ude00","esc":"\/","lone":"\ud800","b":{"b":1,"a":2}}`
    const published = await suite.api.call('POST', `/api/orgs/${member.organisationId}/events`, {
      apiKey: member.apiKey,
      raw: `{"event":"customer:created","data":${data},"timestamp":1700000000000,"traceId":"t-1"}`,
    })
    const { deliveries } = published.json as { deliveries: { id: string }[] }
    const answer = await get(webhook.id, deliveries[0]!.id)
    expect(answer.text).to.include(
      `"payload":{"event":"customer:created","data":${data},"timestamp":1700000000000,"traceId":"t-1","triggeredBy":null},"attempts":[]}`,
    )
  })

  it('shows a test delivery to every member that may read webhooks', async () => {
    const { organisationId } = member
    const webhook = await webhookOf(organisationId)
    const { deliveryId } = await publish(TEST_EVENT_KEY)
    const reader = await createMember(suite.database.dataSource, {
      organisationId,
      permissions: ['webhook:read'],
    })
    const answer = await get(webhook.id, deliveryId, reader.apiKey)
    expect(answer.status).to.equal(200)
    expect(answer.json).to.have.nested.property('payload.event', TEST_EVENT_KEY)
  })
})

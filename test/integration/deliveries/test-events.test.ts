import { expect } from 'chai'
import { builtInCatalogue } from '../../../src/catalogue/built-in-catalogue.ts'
import { readEventPage, readEvents } from '../../../src/db/queries/event-stream.ts'
import { findOverdue, findUnstarted } from '../../../src/db/queries/due-deliveries.ts'
import { commitEvents, type CommittedDelivery } from '../../../src/deliveries/protocol/commit-events.ts'
import { createAttempt } from '../../../src/deliveries/attempt/make-attempt.ts'
import { findMember } from '../../../src/db/queries/organisations.ts'
import { newTestEvent } from '../../../src/deliveries/publish/envelope.ts'
import { attemptDependencies, attemptRequest, NO_SIGNALS } from '../../helpers/deliveries/attempts.ts'
import {
  createMember,
  createWebhookRow,
  testCommits,
  type TestMember,
} from '../../helpers/database/factories.ts'
import { createReceiver, type Answer, type Receiver } from '../../helpers/receivers/receiver.ts'
import { useApi } from '../../helpers/api/api.ts'

describe('a test event', () => {
  const suite = useApi()
  let member: TestMember
  let webhookId: string
  let receiver: Receiver
  let answer: Answer

  beforeEach(async () => {
    answer = () => 503
    receiver = await createReceiver({ answer: (...args) => answer(...args) })
    member = await createMember(suite.database.dataSource)
    const { organisationId } = member
    webhookId = (await createWebhookRow(suite.database.dataSource, { organisationId, url: receiver.url })).id
  })
  afterEach(() => receiver.close())

  async function send(): Promise<CommittedDelivery> {
    const { organisationId } = member
    const event = newTestEvent(organisationId, webhookId, {
      event: 'webhook:test',
      data: { webhookId },
      timestamp: Date.now(),
      triggeredBy: null,
    })
    const { reserve, leaseMs } = testCommits()
    const commit = { ...reserve([], 1), leaseMs }
    return (await commitEvents(suite.database.dataSource, [event], commit))[0]![0]!
  }
  async function attempt(delivery: CommittedDelivery) {
    const dependencies = attemptDependencies(suite.database.dataSource)
    const outcome = await createAttempt(dependencies)(attemptRequest(delivery), NO_SIGNALS)
    await dependencies.httpClient.close()
    return outcome
  }
  const call = (method: string, path: string, body?: unknown) =>
    suite.api.call(method, `/api/orgs/${member.organisationId}/webhooks${path}`, { ...member, body })
  const row = async ({ deliveryId }: CommittedDelivery) => {
    const [found] = await suite.database.dataSource.query<Record<string, unknown>[]>(
      'SELECT state, attempts, stop_reason, next_attempt_at, sweep_at FROM delivery WHERE id = $1',
      [deliveryId],
    )
    return found!
  }

  it('is stopped after one failed attempt, and never swept again', async () => {
    const delivery = await send()
    expect(await attempt(delivery)).to.include({ state: 'stopped', attempts: 1, statusCode: 503 })
    const ended = { state: 'stopped', attempts: 1, stop_reason: 'test_failed' }
    expect(await row(delivery)).to.deep.equal({ ...ended, next_attempt_at: null, sweep_at: null })
    const { dataSource } = suite.database
    expect(await findUnstarted(dataSource, { limit: 10, defaultRoom: 10, rooms: [] })).to.deep.equal([])
    expect(await findOverdue(dataSource, 10)).to.deep.equal([])
  })

  it('with an event key has the example of the catalogue and its sender, and counts as a test event all the same', async () => {
    const answer = await call('POST', `/${webhookId}/test`, { eventKey: 'invoice:paid' })
    expect(answer.status, answer.text).to.equal(202)
    const { deliveryId } = answer.json as { deliveryId: string }
    const { eventKey, ...detail } = (await call('GET', `/${webhookId}/deliveries/${deliveryId}`)).json as {
      eventKey: string
      payload: { event: string; data: object; triggeredBy: object | null }
    }
    expect([eventKey, detail.payload.event]).to.deep.equal(['invoice:paid', 'invoice:paid'])
    expect(detail.payload.data).to.deep.equal(builtInCatalogue.find('invoice:paid')!.example)
    const sender = (await findMember(suite.database.dataSource, member.organisationId, member.memberId))!
    expect(detail.payload.triggeredBy).to.deep.equal({ id: sender.id, name: sender.name })
    const delivery = suite.api.started.find((started) => started.deliveryId === deliveryId)!
    expect(await attempt(delivery)).to.include({ state: 'stopped', attempts: 1 })
    expect(await row(delivery)).to.include({ stop_reason: 'test_failed' })
    const again = await call('POST', `/${webhookId}/deliveries/${deliveryId}/retry`)
    expect(again.json).to.include({ code: 'test_delivery' })
    const { dataSource } = suite.database
    const keys = ['invoice:paid']
    const range = { after: 0, upTo: { sequence: Number.MAX_SAFE_INTEGER, atMs: 0 } }
    const page = { ...range, keys, limit: 10, maxBytes: 1_000 }
    expect((await readEventPage(dataSource, member.organisationId, page)).events).to.deep.equal([])
    expect(await readEvents(dataSource, [member.organisationId], range)).to.deep.equal([])
  })

  it('with an event key is refused where the key is unknown, not subscribed to, or not to be read', async () => {
    const refusal = async (eventKey: string, apiKey = member.apiKey) => {
      const path = `/api/orgs/${member.organisationId}/webhooks/${webhookId}/test`
      const { status, json } = await suite.api.call('POST', path, { apiKey, body: { eventKey } })
      return [status, (json as { code: string }).code]
    }
    expect(await refusal('invoice:eaten')).to.deep.equal([422, 'invalid_fields'])
    const { organisationId } = member
    const permissions = ['webhook:manage', 'customer:read']
    const manager = await createMember(suite.database.dataSource, { organisationId, permissions })
    expect(await refusal('invoice:paid', manager.apiKey)).to.deep.equal([403, 'missing_permission'])
    const options = { organisationId, url: receiver.url, subscribedEventKeys: ['customer:created'] }
    webhookId = (await createWebhookRow(suite.database.dataSource, options)).id
    expect(await refusal('invoice:paid')).to.deep.equal([409, 'not_subscribed'])
  })

  it('shows a failed attempt in its own delivery, and nowhere else', async () => {
    const delivery = await send()
    await attempt(delivery)
    const detail = await call('GET', `/${webhookId}/deliveries/${delivery.deliveryId}`)
    expect(detail.json).to.have.nested.property('attempts[0].statusCode', 503)
    const counts = {
      waitingForFirstAttempt: 0,
      oldestWaitingForFirstAttemptMs: null,
      waitingForRetry: 0,
      permanentlyFailed: 0,
      stopped: 0,
      latestAttempt: null,
    }
    expect((await call('GET', '/delivery-stats')).json).to.deep.equal({ data: [{ webhookId, ...counts }] })
    const overview = (await call('GET', '/overview')).json as { data: object[] }
    expect(overview.data[0]).to.deep.include({ ...counts, openIncident: null })
    const activity = (await call('GET', `/${webhookId}/activity`)).json as { buckets: { failed: number }[] }
    expect(activity.buckets.every(({ failed }) => failed === 0)).to.equal(true)
  })

  for (const status of [503, 200])
    it(`cannot be retried after a ${status}: 409`, async () => {
      answer = () => status
      const delivery = await send()
      await attempt(delivery)
      const refused = await call('POST', `/${webhookId}/deliveries/${delivery.deliveryId}/retry`)
      expect(refused.status).to.equal(409)
      expect(refused.json).to.include({ code: status === 200 ? 'delivery_completed' : 'test_delivery' })
      expect(receiver.posts).to.have.length(1)
    })

  it('cannot be retried before its attempt, nor after disabling the webhook stopped it', async () => {
    const delivery = await send()
    const retry = () => call('POST', `/${webhookId}/deliveries/${delivery.deliveryId}/retry`)
    expect((await retry()).json).to.include({ code: 'test_delivery' })
    for (const enabled of [false, true]) await call('PATCH', `/${webhookId}`, { enabled })
    expect((await retry()).json).to.include({ code: 'test_delivery' })
    expect((await call('POST', '/retry-deliveries', { mode: 'stopped' })).json).to.include({ total: 0 })
    const stats = (await call('GET', '/delivery-stats')).json as { data: { stopped: number }[] }
    expect(stats.data[0]).to.include({ stopped: 0 })
  })
})

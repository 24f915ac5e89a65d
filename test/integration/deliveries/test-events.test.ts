import { expect } from 'chai'
import { insertTestEvent, type DeliveryToStart } from '../../../src/db/queries/events.ts'
import { takeOverdue, takeUnstarted } from '../../../src/db/queries/recovery.ts'
import { createAttempt } from '../../../src/deliveries/attempt/make-attempt.ts'
import { testEnvelope } from '../../../src/events/test-event.ts'
import { newId } from '../../../src/ids.ts'
import { attemptDependencies } from '../../helpers/deliveries/attempts.ts'
import {
  createMember,
  createWebhookRow,
  TEST_PROCESS,
  type TestMember,
} from '../../helpers/database/factories.ts'
import { createReceiver, type Answer, type Receiver } from '../../helpers/receivers/receiver.ts'
import { useApi } from '../../helpers/api/use-api.ts'

const NEVER = new AbortController().signal

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

  async function send(): Promise<DeliveryToStart> {
    const event = { id: newId(), organisationId: member.organisationId, ...testEnvelope(webhookId) }
    const lease = { owner: TEST_PROCESS, leaseMs: 60_000 }
    return (await insertTestEvent(suite.database.dataSource, event, webhookId, lease))!
  }
  async function attempt({ organisationId, deliveryId }: DeliveryToStart) {
    const dependencies = attemptDependencies(suite.database.dataSource)
    const request = {
      organisationId,
      webhookId,
      deliveryId,
      number: 1,
      hold: null,
      onlyIfDue: false,
      kind: 'first' as const,
    }
    const outcome = await createAttempt(dependencies)(request, { cancelled: NEVER, shutDown: NEVER })
    await dependencies.httpClient.close()
    return outcome
  }
  const call = (method: string, path: string, body?: unknown) =>
    suite.api.call(method, `/api/orgs/${member.organisationId}/webhooks${path}`, {
      apiKey: member.apiKey,
      body,
    })
  const row = async ({ deliveryId }: DeliveryToStart) => {
    const [found] = await suite.database.dataSource.query<Record<string, unknown>[]>(
      'SELECT state, attempts, stop_reason, next_attempt_at, sweep_at FROM delivery WHERE id = $1',
      [deliveryId],
    )
    return found!
  }

  it('that fails is stopped after one attempt, and nobody looks at it again', async () => {
    const delivery = await send()
    expect(await attempt(delivery)).to.include({ state: 'stopped', attempts: 1, statusCode: 503 })
    const ended = { state: 'stopped', attempts: 1, stop_reason: 'test_failed' }
    expect(await row(delivery)).to.deep.equal({ ...ended, next_attempt_at: null, sweep_at: null })
    const { dataSource } = suite.database
    const lease = { owner: newId(), leaseMs: 1_000, limit: 10, onlyHealthy: false, rooms: [] }
    expect(await takeUnstarted(dataSource, lease)).to.deep.equal([])
    expect(await takeOverdue(dataSource, { holdMs: 1_000, limit: 10 })).to.deep.equal([])
  })

  it('that fails shows its attempt in its own delivery, and nowhere else', async () => {
    const delivery = await send()
    await attempt(delivery)
    const detail = await call('GET', `/${webhookId}/deliveries/${delivery.deliveryId}`)
    expect(detail.json).to.have.nested.property('attempts[0].statusCode', 503)
    const counts = { waitingForRetry: 0, permanentlyFailed: 0, stopped: 0, latestAttempt: null }
    expect((await call('GET', '/delivery-stats')).json).to.deep.equal({ data: [{ webhookId, ...counts }] })
    const overview = (await call('GET', '/overview')).json as { data: object[] }
    expect(overview.data[0]).to.deep.include({ ...counts, openIncident: null })
    const activity = (await call('GET', `/${webhookId}/activity`)).json as { hours: { failed: number }[] }
    expect(activity.hours.every(({ failed }) => failed === 0)).to.equal(true)
  })

  for (const status of [503, 200])
    it(`that is answered ${status} cannot be retried: 409`, async () => {
      answer = () => status
      const delivery = await send()
      await attempt(delivery)
      const refused = await call('POST', `/${webhookId}/deliveries/${delivery.deliveryId}/retry`)
      expect(refused.status).to.equal(409)
      expect(refused.json).to.include({ code: status === 200 ? 'delivery_completed' : 'test_delivery' })
      expect(receiver.posts).to.have.length(1)
    })

  it('cannot be retried before its attempt either, nor after a switch-off stopped it', async () => {
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

import { expect } from 'chai'
import { requestRetry } from '../../helpers/deliveries/request-retry.ts'
import { type AttemptDependencies, createAttempt } from '../../../src/deliveries/attempt/make-attempt.ts'
import { attemptDependencies, attemptRequest, NO_SIGNALS } from '../../helpers/deliveries/attempts.ts'
import { createTestApi, type ApiResponse, type TestApi } from '../../helpers/api/api.ts'
import {
  createMember,
  createWebhookRow,
  publishRow,
  type TestMember,
} from '../../helpers/database/factories.ts'
import { createReceiver, type Answer, type Receiver } from '../../helpers/receivers/receiver.ts'
import { setRow } from '../../helpers/deliveries/set-row.ts'
import { useDatabase } from '../../helpers/database/database.ts'

const [CUSTOMER, INVOICE] = ['customer:created', 'invoice:created']

describe('the subscription', () => {
  const database = useDatabase()
  let api: TestApi
  let dependencies: AttemptDependencies
  let receiver: Receiver
  let answer: Answer
  let full: TestMember
  let webhookId: string

  before(async () => {
    dependencies = attemptDependencies(database.dataSource, 3_000)
    api = await createTestApi(database.dataSource, {
      urlPolicy: { allowHttp: true, allowedCidrs: ['127.0.0.0/8'] },
    })
  })
  after(async () => {
    await api.close()
    await dependencies.httpClient.close()
  })
  beforeEach(async () => {
    answer = () => 500
    receiver = await createReceiver({ answer: (...args) => answer(...args) })
    full = await createMember(database.dataSource)
    webhookId = await newWebhook([CUSTOMER, INVOICE])
  })
  afterEach(() => receiver.close())

  const newWebhook = async (subscribedEventKeys: string[]): Promise<string> => {
    const { organisationId } = full
    return (
      await createWebhookRow(database.dataSource, { organisationId, url: receiver.url, subscribedEventKeys })
    ).id
  }
  const call = (method: string, path: string, body?: object, { apiKey } = full): Promise<ApiResponse> =>
    api.call(method, `/api/orgs/${full.organisationId}/webhooks${path}`, { apiKey, body })
  const patch = (body: object, caller = full) => call('PATCH', `/${webhookId}`, body, caller)
  const retry = (deliveryId: string, caller = full) =>
    call('POST', `/${webhookId}/deliveries/${deliveryId}/retry`, undefined, caller)
  const publish = async (eventKey: string): Promise<string> =>
    (await publishRow(database.dataSource, full.organisationId, { eventKey })).find(
      (delivery) => delivery.webhookId === webhookId,
    )!.deliveryId
  const attempt = (deliveryId: string, number = 1) =>
    createAttempt(dependencies)(
      attemptRequest(
        { organisationId: full.organisationId, webhookId, deliveryId },
        { number, maxWaitMs: 0 },
      ),
      NO_SIGNALS,
    )
  const stateOf = async (deliveryId: string): Promise<string> => {
    const [row] = await database.dataSource.query<{ state: string }[]>(
      'SELECT state FROM delivery WHERE id = $1',
      [deliveryId],
    )
    return row!.state
  }
  const failed = async (eventKey: string): Promise<string> => {
    const deliveryId = await publish(eventKey)
    await attempt(deliveryId)
    await setRow(database.dataSource, deliveryId, { state: 'failed', attempts: 1 })
    return deliveryId
  }
  const waiting = async (eventKey: string): Promise<string> => {
    const deliveryId = await publish(eventKey)
    expect(await attempt(deliveryId)).to.include({ state: 'waiting' })
    return deliveryId
  }

  it('stops the rest when * becomes a list, and nothing when a list becomes *', async () => {
    webhookId = await newWebhook(['*'])
    const [lost, kept] = [await publish(INVOICE), await publish(CUSTOMER)]
    await patch({ subscribedEventKeys: [CUSTOMER] })
    expect([await stateOf(lost), await stateOf(kept)]).to.deep.equal(['stopped', 'pending'])
    await patch({ subscribedEventKeys: ['*'] })
    expect(await stateOf(kept)).to.equal('pending')
  })

  it('resumes what was never attempted once it and the switch of its webhook allow that again', async () => {
    const [one, other] = [await publish(INVOICE), await publish(CUSTOMER)]
    const states = async () => [await stateOf(one), await stateOf(other)]
    await patch({ enabled: false })
    await patch({ subscribedEventKeys: [CUSTOMER] })
    expect(await states()).to.deep.equal(['stopped', 'stopped'])
    await patch({ enabled: true })
    expect(await states()).to.deep.equal(['stopped', 'pending'])
    await patch({ subscribedEventKeys: [CUSTOMER, INVOICE] })
    expect(await states()).to.deep.equal(['pending', 'pending'])
  })

  it('covers a test event always', async () => {
    answer = () => 200
    const { deliveryId } = (await call('POST', `/${webhookId}/test`)).json as { deliveryId: string }
    expect((await patch({ subscribedEventKeys: [CUSTOMER] })).status).to.equal(200)
    expect(await attempt(deliveryId)).to.include({ state: 'completed' })
  })

  for (const state of ['stopped', 'failed'] as const) {
    it(`refuses to retry a ${state} delivery of a removed key, until the key is added again`, async () => {
      const deliveryId = state === 'failed' ? await failed(INVOICE) : await waiting(INVOICE)
      await patch({ subscribedEventKeys: [CUSTOMER] })
      const refused = await retry(deliveryId)
      expect(refused.status, refused.text).to.equal(409)
      expect(refused.json).to.include({ code: 'not_subscribed' })
      expect(await stateOf(deliveryId)).to.equal(state)
      expect(await requestRetry(database.dataSource, full.organisationId, webhookId, deliveryId)).to.equal(
        null,
      )

      await patch({ subscribedEventKeys: [CUSTOMER, INVOICE] })
      expect((await retry(deliveryId)).status).to.equal(202)
      answer = () => 200
      const number = receiver.posts.length + 1
      expect(await attempt(deliveryId, number)).to.include({ state: 'completed' })
    })
  }

  it('shows the deliveries of a removed key as before', async () => {
    const deliveryId = await failed(INVOICE)
    await patch({ subscribedEventKeys: [CUSTOMER] })
    const list = (await call('GET', `/${webhookId}/deliveries`)).json as { data: { id: string }[] }
    expect(list.data.map(({ id }) => id)).to.deep.equal([deliveryId])
    expect((await call('GET', `/${webhookId}/deliveries/${deliveryId}`)).status).to.equal(200)
  })

  it('sends no old event to a URL that is set by a member who may not read the event', async () => {
    const [lost, stopped] = [await failed(INVOICE), await waiting(INVOICE)]
    await patch({ subscribedEventKeys: [CUSTOMER] })
    const { organisationId } = full
    const permissions = ['webhook:read', 'webhook:manage', 'customer:read']
    const manager = await createMember(database.dataSource, { organisationId, permissions })
    const stranger = await createReceiver()
    try {
      expect((await patch({ url: stranger.url }, manager)).status).to.equal(200)
      for (const deliveryId of [lost, stopped]) {
        expect((await retry(deliveryId, manager)).json).to.include({ code: 'not_subscribed' })
        expect((await attempt(deliveryId, 2)).state).to.be.oneOf(['failed', 'stopped'])
      }
      for (const mode of ['failed', 'force', 'stopped'])
        expect((await call('POST', '/retry-deliveries', { mode }, manager)).json).to.include({ total: 0 })
      const widened = await patch({ subscribedEventKeys: [CUSTOMER, INVOICE] }, manager)
      expect(widened.status).to.equal(403)
      expect(stranger.posts).to.deep.equal([])
    } finally {
      await stranger.close()
    }
  })
})

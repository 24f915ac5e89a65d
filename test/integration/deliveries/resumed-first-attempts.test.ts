import { expect } from 'chai'
import { useApi } from '../../helpers/api/api.ts'
import { createMember, createWebhookRow, type TestMember } from '../../helpers/database/factories.ts'

const [SUBSCRIBED, OTHER] = ['customer:created', 'customer:updated']

describe('a delivery that was never attempted', () => {
  const suite = useApi()
  let member: TestMember
  let webhookId: string
  let deliveryId: string

  beforeEach(async () => {
    const { dataSource } = suite.database
    member = await createMember(dataSource)
    const { organisationId } = member
    const url = 'https://receiver.example/hook'
    const subscribedEventKeys = [SUBSCRIBED, OTHER]
    webhookId = (await createWebhookRow(dataSource, { organisationId, url, subscribedEventKeys })).id
    deliveryId = await publish(SUBSCRIBED)
  })

  async function call<T>(expected: number, method: string, path: string, body: object): Promise<T> {
    const { organisationId, apiKey } = member
    const answered = await suite.api.call(method, `/api/orgs/${organisationId}${path}`, { apiKey, body })
    expect(answered.status, answered.text).to.equal(expected)
    return answered.json as T
  }
  async function publish(event: string): Promise<string> {
    const body = { event, data: { id: 'cus_1' } }
    const { deliveries } = await call<{ deliveries: { id: string }[] }>(202, 'POST', '/events', body)
    return deliveries[0]!.id
  }
  const change = (changes: object) => call(200, 'PATCH', `/webhooks/${webhookId}`, changes)
  const rowOf = async (id: string): Promise<object | undefined> => {
    const found = await suite.database.dataSource.query<object[]>(
      'SELECT state, attempts, next_attempt_at FROM delivery WHERE id = $1',
      [id],
    )
    return found[0]
  }
  const PENDING = { state: 'pending', attempts: 0, next_attempt_at: null }
  const STOPPED = { state: 'stopped', attempts: 0, next_attempt_at: null }

  it('is resumed when its webhook is switched on again', async () => {
    await change({ enabled: false })
    expect(await rowOf(deliveryId)).to.deep.equal(STOPPED)
    await change({ enabled: true })
    expect(await rowOf(deliveryId)).to.deep.equal(PENDING)
  })

  for (const [added, subscribedEventKeys] of [
    ['its event key', [SUBSCRIBED, OTHER]],
    ['`*`', ['*']],
  ] as const)
    it(`is resumed when ${added} is added to the subscription again`, async () => {
      await change({ subscribedEventKeys: [OTHER] })
      expect(await rowOf(deliveryId)).to.deep.equal(STOPPED)
      await change({ subscribedEventKeys })
      expect(await rowOf(deliveryId)).to.deep.equal(PENDING)
    })

  it('is resumed only when both the switch and the subscription allow it', async () => {
    const other = await publish(OTHER)
    await change({ enabled: false })
    await change({ subscribedEventKeys: [OTHER] })
    await change({ enabled: true })
    expect([await rowOf(deliveryId), await rowOf(other)]).to.deep.equal([STOPPED, PENDING])
    await change({ subscribedEventKeys: [SUBSCRIBED, OTHER] })
    expect([await rowOf(deliveryId), await rowOf(other)]).to.deep.equal([PENDING, PENDING])
  })
})

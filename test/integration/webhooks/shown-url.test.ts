import { expect } from 'chai'
import {
  createMember,
  createWebhookRow,
  publishRow,
  type TestMember,
} from '../../helpers/database/factories.ts'
import { useApi } from '../../helpers/api/api.ts'
import { attempt } from '../deliveries/delivery-rows.ts'

const WHOLE = 'https://hooks.example.com/services/T024BE7LD/B01/kFzPq3mVw?token=secret'
const SHORT = 'https://hooks.example.com/services/T0…'

describe('the URL of a webhook', () => {
  const suite = useApi()
  let full: TestMember
  let webhookId: string
  let deliveryId: string

  beforeEach(async () => {
    const { dataSource } = suite.database
    full = await createMember(dataSource)
    const { organisationId } = full
    const webhook = { organisationId, url: WHOLE, subscribedEventKeys: ['customer:created', 'invoice:paid'] }
    webhookId = (await createWebhookRow(dataSource, webhook)).id
    const [delivery] = await publishRow(dataSource, organisationId)
    deliveryId = delivery!.deliveryId
    await attempt(dataSource, delivery!, 1)
  })

  const member = (permissions: string[]): Promise<TestMember> =>
    createMember(suite.database.dataSource, { organisationId: full.organisationId, permissions })

  const answers = async ({ apiKey }: TestMember): Promise<string[]> => {
    const paths = ['', `/${webhookId}`, '/overview', `/${webhookId}/deliveries/${deliveryId}`]
    return Promise.all(
      paths.map(async (path) => {
        const answer = await suite.api.call('GET', `/api/orgs/${full.organisationId}/webhooks${path}`, {
          apiKey,
        })
        expect(answer.status, answer.text).to.equal(200)
        return answer.text
      }),
    )
  }

  it('is complete for members that may change the webhook, with its attempts', async () => {
    const manager = await member(['webhook:read', 'webhook:manage', 'customer:read', 'invoice:read'])
    for (const caller of [full, manager])
      for (const text of await answers(caller)) expect(text).to.include(`"url":"${WHOLE}"`)
  })

  const others: [who: string, permissions: string[]][] = [
    ['a reader', ['webhook:read', 'customer:read', 'invoice:read']],
    [
      'a manager who lacks a permission of the subscription',
      ['webhook:read', 'webhook:manage', 'customer:read'],
    ],
  ]
  for (const [who, permissions] of others) {
    it(`is scheme, host and a shortened path for ${who}, with its attempts`, async () => {
      for (const text of await answers(await member(permissions))) {
        expect(text).to.include(`"url":"${SHORT}"`)
        expect(text).to.not.match(/T024|B01|kFz|token|secret/)
      }
    })
  }

  it('is shortened in the answer to a change by a member who may only reduce', async () => {
    const { apiKey } = await member(['webhook:manage', 'customer:read'])
    const path = `/api/orgs/${full.organisationId}/webhooks/${webhookId}`
    const answer = await suite.api.call('PATCH', path, { apiKey, body: { enabled: false } })
    expect(answer.json).to.include({ url: SHORT, enabled: false })
    const back = await suite.api.call('PATCH', path, { apiKey, body: { url: SHORT } })
    expect(back.json).to.deep.equal(answer.json)
    expect((await answers(full))[1]).to.include(`"url":"${WHOLE}"`)
    const other = await suite.api.call('PATCH', path, { apiKey, body: { url: `${SHORT}…` } })
    expect(other.status).to.equal(403)
  })
})

import { expect } from 'chai'
import type { WebhookRow } from '../../../src/db/queries/webhooks.ts'
import {
  createMember,
  createWebhookRow,
  publishRow,
  type TestMember,
} from '../../helpers/database/factories.ts'
import { setRow } from '../../helpers/deliveries/set-row.ts'
import { useApi } from '../../helpers/api/api.ts'
import { attempt } from './delivery-rows.ts'

type Delivery = {
  id: string
  eventId: string
  latestAttempt: { number: number; error: string | null } | null
}
type Page = { data: Delivery[]; nextCursor: string | null; searchedUntil: string | null }

describe('GET /webhooks/:id/deliveries, searched', () => {
  const suite = useApi()
  let member: TestMember
  let webhook: WebhookRow

  beforeEach(async () => {
    member = await createMember(suite.database.dataSource)
    const { organisationId } = member
    const url = 'https://receiver.example.com/'
    webhook = await createWebhookRow(suite.database.dataSource, { organisationId, url })
  })

  const { database } = suite
  async function page(query: string, apiKey = member.apiKey): Promise<Page> {
    const path = `/api/orgs/${member.organisationId}/webhooks/${webhook.id}/deliveries?${query}`
    const answer = await suite.api.call('GET', path, { apiKey })
    expect(answer.status, answer.text).to.equal(200)
    return answer.json as Page
  }
  const ids = async (query: string): Promise<string[]> => (await page(query)).data.map(({ id }) => id)
  const publish = async () => (await publishRow(database.dataSource, member.organisationId))[0]!

  it('selects by the answer to the latest attempt', async () => {
    const refused = await publish()
    await attempt(database.dataSource, refused, 1)
    const repaired = await publish()
    await attempt(database.dataSource, repaired, 1)
    await attempt(database.dataSource, repaired, 2, { next: 'completed' })
    const unreachable = await publish()
    await attempt(database.dataSource, unreachable, 1, { statusCode: null, failureCode: 'timeout' })
    await publish()
    expect(await ids('statusCode=503')).to.deep.equal([refused.deliveryId])
    expect(await ids('statusCode=200')).to.deep.equal([repaired.deliveryId])
    expect(await ids('statusCode=503&state=completed')).to.deep.equal([])
    const [latest] = (await page('statusCode=200')).data
    expect(latest!.latestAttempt).to.include({ number: 2, error: null })
  })

  it('finds exactly a delivery, the delivery of an event, and those of a trace', async () => {
    const first = await publish()
    const second = await publish()
    await database.dataSource.query(
      `UPDATE event SET trace_id = 'trace-2' WHERE id = (SELECT event_id FROM delivery WHERE id = $1)`,
      [second.deliveryId],
    )
    const [shown] = (await page(`search=${first.deliveryId}`)).data
    expect(shown!.id).to.equal(first.deliveryId)
    expect(await ids(`search=${shown!.eventId}`)).to.deep.equal([first.deliveryId])
    expect(await ids('search=trace-2')).to.deep.equal([second.deliveryId])
    expect(await ids('search=trace-2&state=pending')).to.deep.equal([second.deliveryId])
    for (const none of ['search=trace-2&state=failed', 'search=trace', `search=${webhook.id}`])
      expect(await page(none), none).to.deep.equal({ data: [], nextCursor: null, searchedUntil: null })
  })

  it('finds nothing of another webhook or another organisation', async () => {
    const { organisationId } = await createMember(database.dataSource)
    await createWebhookRow(database.dataSource, { organisationId, url: 'https://other.example.com/' })
    const theirs = (await publishRow(database.dataSource, organisationId))[0]!
    const own = await publish()
    const url = 'https://second.example.com/'
    webhook = await createWebhookRow(database.dataSource, { organisationId: member.organisationId, url })
    for (const search of [theirs.deliveryId, own.deliveryId, 'trace-1'])
      expect(await ids(`search=${search}`), search).to.deep.equal([])
  })

  it('lists stopped test events among the stopped deliveries, in their order', async () => {
    const deliveries = [await publish(), await publish(), await publish()]
    const deliveryIds = deliveries.map(({ deliveryId }) => deliveryId)
    await setRow(database.dataSource, deliveryIds, { state: 'stopped' })
    await database.dataSource.query('UPDATE delivery SET is_test = true WHERE id = $1', [deliveryIds[1]])
    expect(await ids('state=stopped')).to.deep.equal(deliveryIds.toReversed())
  })
})

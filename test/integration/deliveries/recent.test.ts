import { expect } from 'chai'
import {
  createMember,
  createWebhookRow,
  publishRow,
  type TestMember,
} from '../../helpers/database/factories.ts'
import { writeBacklog } from '../../helpers/deliveries/backlog.ts'
import { useApi } from '../../helpers/api/api.ts'

type Recent = { data: { id: string; webhookId: string; eventKey: string; state: string }[] }

describe('GET /webhooks/recent-deliveries', () => {
  const suite = useApi()
  let member: TestMember
  let [first, second] = ['', '']

  beforeEach(async () => {
    const { dataSource } = suite.database
    member = await createMember(dataSource)
    const row = { organisationId: member.organisationId, url: 'https://receiver.example.com/' }
    first = (await createWebhookRow(dataSource, row)).id
    second = (await createWebhookRow(dataSource, row)).id
  })

  async function recent(query = ''): Promise<Recent['data']> {
    const path = `/api/orgs/${member.organisationId}/webhooks/recent-deliveries${query}`
    const answer = await suite.api.call('GET', path, { apiKey: member.apiKey })
    expect(answer.status, answer.text).to.equal(200)
    return (answer.json as Recent).data
  }
  const backlog = (webhookId: string, count: number, eventKey = 'invoice:paid') =>
    writeBacklog(suite.database.dataSource, {
      organisationId: member.organisationId,
      webhookId,
      state: 'failed',
      count,
      eventKey,
    })

  it('gives the deliveries of all webhooks, newest first, and no other organisation’s', async () => {
    const { dataSource } = suite.database
    const older = await publishRow(dataSource, member.organisationId)
    const newer = await publishRow(dataSource, member.organisationId)
    const other = await createMember(dataSource)
    await createWebhookRow(dataSource, {
      organisationId: other.organisationId,
      url: 'https://x.example.com/',
    })
    await publishRow(dataSource, other.organisationId)
    const found = await recent()
    expect(found.map(({ webhookId }) => webhookId)).to.have.members([first, second, first, second])
    const idsOf = (published: typeof older) => published.map(({ deliveryId }) => deliveryId)
    expect(found.slice(0, 2).map(({ id }) => id)).to.have.members(idsOf(newer))
    expect(found.slice(2).map(({ id }) => id)).to.have.members(idsOf(older))
  })

  it('gives those that fit the state and the event key, up to the limit', async () => {
    await publishRow(suite.database.dataSource, member.organisationId, { eventKey: 'invoice:paid' })
    const failed = await backlog(first, 3)
    await backlog(second, 2, 'comment:created')
    expect((await recent('?state=failed&eventKey=invoice:paid')).map(({ id }) => id)).to.have.members(failed)
    expect(await recent('?state=pending')).to.have.length(2)
    expect(await recent('?limit=4')).to.have.length(4)
  })

  it('looks at the newest 50 of each webhook, so that a busy one hides no quiet one', async () => {
    await backlog(second, 1)
    await backlog(first, 60)
    const found = await recent('?limit=100')
    expect(found.filter(({ webhookId }) => webhookId === first)).to.have.length(50)
    expect(found.at(-1)?.webhookId).to.equal(second)
  })

  it('leaves out deleted webhooks', async () => {
    await backlog(first, 1)
    await suite.api.call('DELETE', `/api/orgs/${member.organisationId}/webhooks/${first}`, {
      apiKey: member.apiKey,
    })
    expect(await recent()).to.deep.equal([])
  })
})

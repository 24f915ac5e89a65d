import { expect } from 'chai'
import { useApi } from '../../../helpers/api/api.ts'
import {
  createMember,
  createWebhookRow,
  publishRow,
  type TestMember,
} from '../../../helpers/database/factories.ts'
import { attempt } from '../delivery-rows.ts'

type EventSummary = { id: string; eventKey: string; traceId: string; deliveries: Record<string, number> }
type Page = { data: EventSummary[]; nextCursor: string | null; searchedUntil: string | null }

describe('GET /events', () => {
  const suite = useApi()
  const { database } = suite
  let member: TestMember

  beforeEach(async () => {
    member = await createMember(database.dataSource)
    for (const name of ['one', 'two'])
      await createWebhookRow(database.dataSource, {
        organisationId: member.organisationId,
        url: `https://${name}.example.com/`,
      })
  })

  const call = (query = '', apiKey = member.apiKey) =>
    suite.api.call('GET', `/api/orgs/${member.organisationId}/events${query}`, { apiKey })
  async function page(query = '', apiKey = member.apiKey): Promise<Page> {
    const answer = await call(query, apiKey)
    expect(answer.status, answer.text).to.equal(200)
    return answer.json as Page
  }
  const ids = async (query = '', apiKey = member.apiKey): Promise<string[]> =>
    (await page(query, apiKey)).data.map(({ id }) => id)
  const publish = async (eventKey?: string) => {
    const options = eventKey === undefined ? {} : { eventKey }
    const deliveries = await publishRow(database.dataSource, member.organisationId, options)
    const [event] = await database.dataSource.query<[{ id: string }]>(
      'SELECT event_id AS id FROM delivery WHERE id = $1',
      [deliveries[0]!.deliveryId],
    )
    return { id: event.id, deliveries }
  }

  it('shows each event with its deliveries by state, newest first', async () => {
    const first = await publish('invoice:paid')
    await attempt(database.dataSource, first.deliveries[0]!, 1, { next: 'completed' })
    await attempt(database.dataSource, first.deliveries[1]!, 1)
    const second = await publish()
    const { data, nextCursor, searchedUntil } = await page()
    expect({ nextCursor, searchedUntil }).to.deep.equal({ nextCursor: null, searchedUntil: null })
    expect(data.map(({ id }) => id)).to.deep.equal([second.id, first.id])
    const none = { failed: 0, stopped: 0, inProgress: 0 }
    expect(data[1]).to.deep.include({
      eventKey: 'invoice:paid',
      traceId: 'trace-1',
      isTest: false,
      deliveries: { total: 2, completed: 1, waiting: 1, pending: 0, ...none },
    })
    expect(data[0]!.deliveries).to.deep.equal({ total: 2, completed: 0, waiting: 0, pending: 2, ...none })
    expect(data[0]).to.not.have.property('payload')
  })

  it('gives every event once, page by page, whatever is published meanwhile', async () => {
    const published: string[] = []
    for (let index = 0; index < 5; index++) published.unshift((await publish()).id)
    const first = await page('?limit=2')
    await publish()
    const second = await page(`?limit=2&cursor=${first.nextCursor!}`)
    const third = await page(`?limit=2&cursor=${second.nextCursor!}`)
    expect([first, second, third].flatMap(({ data }) => data.map(({ id }) => id))).to.deep.equal(published)
    expect(third.nextCursor).to.equal(null)
  })

  it('goes on to older events where that of the cursor is purged, and repeats a minute at most', async () => {
    const [oldest, older, purged, newest] = [
      await publish(),
      await publish(),
      await publish(),
      await publish(),
    ]
    const { nextCursor } = await page('?limit=2')
    await database.dataSource.query('DELETE FROM delivery WHERE event_id = $1', [purged.id])
    await database.dataSource.query('DELETE FROM event WHERE id = $1', [purged.id])
    await database.dataSource.query(
      `UPDATE event SET created_at = created_at + interval '61 seconds' WHERE id = $1`,
      [newest.id],
    )
    expect(await ids(`?cursor=${nextCursor!}`)).to.deep.equal([older.id, oldest.id])
  })

  it('shows a member only the event keys that the member may read', async () => {
    const paid = await publish('invoice:paid')
    await publish('customer:created')
    const { organisationId } = member
    const reader = await createMember(database.dataSource, { organisationId, permissions: ['invoice:read'] })
    const publisher = await createMember(database.dataSource, {
      organisationId,
      permissions: ['event:publish'],
    })
    expect(await ids('', reader.apiKey)).to.deep.equal([paid.id])
    expect(await ids('?eventKey=customer:created', reader.apiKey)).to.deep.equal([])
    expect(await ids('?search=trace-1', reader.apiKey)).to.deep.equal([paid.id])
    expect(await ids('', publisher.apiKey)).to.deep.equal([])
  })

  it('selects by event key and by time', async () => {
    // Elsewhere the order of publication is that of time.
    await database.dataSource.query('TRUNCATE event CASCADE')
    const events = [await publish('invoice:paid'), await publish(), await publish()]
    const times = ['2026-03-01T10:00:00.000Z', '2026-03-01T11:00:00.000Z', '2026-03-01T12:00:00.000Z']
    for (const [index, { id }] of events.entries())
      await database.dataSource.query('UPDATE event SET created_at = $2 WHERE id = $1', [id, times[index]])
    const [first, second, third] = events.map(({ id }) => id)
    expect(await ids('?eventKey=invoice:paid')).to.deep.equal([first])
    expect(await ids(`?since=${times[1]!}`)).to.deep.equal([third, second])
    expect(await ids(`?until=${times[1]!}`)).to.deep.equal([first])
    expect(await ids(`?since=${times[1]!}&until=${times[2]!}`)).to.deep.equal([second])
    expect(await ids('?since=0000-01-01T00:00:00Z&until=9999-12-31T23:59:59Z')).to.have.lengthOf(3)
  })

  it('finds exactly an event and those of a trace, and none of another organisation', async () => {
    const event = await publish()
    const other = await publish()
    await database.dataSource.query(`UPDATE event SET trace_id = 'trace-2' WHERE id = $1`, [other.id])
    const { organisationId } = await createMember(database.dataSource)
    await createWebhookRow(database.dataSource, { organisationId, url: 'https://their.example.com/' })
    await publishRow(database.dataSource, organisationId)
    expect(await ids(`?search=${event.id}`)).to.deep.equal([event.id])
    expect(await ids('?search=trace-1')).to.deep.equal([event.id])
    expect(await ids('?search=trace')).to.deep.equal([])
  })
})

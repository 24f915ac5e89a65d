import { expect } from 'chai'
import { listEvents, type EventListFilter } from '../../../../src/db/queries/events.ts'
import { createMember, createWebhookRow } from '../../../helpers/database/factories.ts'
import { planOf } from '../../../helpers/database/plan.ts'
import { useDatabase } from '../../../helpers/database/database.ts'

const EVENTS = 30_000
const MAX_PAGES = 1_000
const LONG_AGO = new Date('2020-01-01T00:00:00Z')
const NONE: EventListFilter = {
  readableKeys: null,
  eventKey: null,
  since: null,
  until: null,
  search: null,
  after: null,
  limit: 100,
}

describe('the list of 30,000 events', () => {
  const database = useDatabase()
  let organisationId: string

  before(async () => {
    ;({ organisationId } = await createMember(database.dataSource))
    await createWebhookRow(database.dataSource, { organisationId, url: 'https://a.example.com/' })
    await database.dataSource.query(
      `INSERT INTO event (id, organisation_id, key, body, emitted_at, trace_id, created_at)
       SELECT uuidv7(age), $1, CASE WHEN n % 10000 = 77 THEN 'customer:updated' ELSE 'customer:created' END, '{}',
              now() + age, CASE WHEN n < 1000 THEN 'trace-' || n ELSE 'trace-of-all' END, now() + age
         FROM generate_series(1, $2::int) n, LATERAL (SELECT (n - $2) * interval '1 second' AS age) e`,
      [organisationId, EVENTS],
    )
    await database.dataSource.query(
      `INSERT INTO delivery (id, event_id, webhook_id, organisation_id, state, attempts, completed_at)
       SELECT uuidv7(), e.id, w.id, $1, 'completed', 1, now() FROM event e CROSS JOIN webhook w ORDER BY e.sequence`,
      [organisationId],
    )
    for (const table of ['event', 'delivery']) await database.dataSource.query(`ANALYZE ${table}`)
  })

  const FILTERS: [title: string, filter: Partial<EventListFilter>][] = [
    ['nothing', {}],
    ['keys of which there are none', { readableKeys: ['invoice:paid'] }],
    ['an event key that is rare', { eventKey: 'customer:updated' }],
    ['a time long ago', { until: LONG_AGO }],
    ['a time in the future', { since: new Date(Date.now() + 3_600_000) }],
    ['a trace', { search: 'trace-77' }],
    ['a trace that nobody has', { search: 'nowhere' }],
    ['a trace that all have', { search: 'trace-of-all' }],
  ]
  for (const [title, filter] of FILTERS) {
    it(`reads a page by ${title} from indexes, and few pages`, async () => {
      const wanted = { ...NONE, ...filter }
      const { scanned, pages } = await planOf(database.dataSource, (db) =>
        listEvents(db, organisationId, wanted),
      )
      expect(scanned).to.deep.equal([])
      expect(pages).to.be.below(MAX_PAGES)
    })
  }

  it('goes on where a search ended, and finds every event that fits once', async () => {
    const seen: string[] = []
    let [after, pages]: [string | null, number] = [null, 0]
    do {
      const filter: EventListFilter = { ...NONE, eventKey: 'customer:updated', after }
      const { page, last, searchedUntil } = await listEvents(database.dataSource, organisationId, filter)
      seen.push(...page.map(({ id }) => id))
      expect(searchedUntil === null).to.equal(last === null)
      after = last
      pages++
    } while (after !== null)
    const rare = await database.dataSource.query<{ id: string }[]>(
      `SELECT id FROM event WHERE key = 'customer:updated' ORDER BY sequence DESC`,
    )
    expect(seen).to.deep.equal(rare.map(({ id }) => id))
    expect(pages).to.equal(7)
  })
})

import { expect } from 'chai'
import type { DataSource } from 'typeorm'
import { listDeliveries, type DeliveryListFilter } from '../../../src/db/queries/delivery-list.ts'
import { listEvents, type EventListFilter } from '../../../src/db/queries/events.ts'
import { NO_FILTER } from '../../../src/domain/delivery-filter.ts'
import { createMember, createWebhookRow } from '../../helpers/database/factories.ts'
import { planOf } from '../../helpers/database/plan.ts'
import { useDatabase } from '../../helpers/database/database.ts'

const DELIVERIES = 40_000
/** One for each delivery: looking each of them up would read several. */
const MAX_PAGES = DELIVERIES

const NONE: DeliveryListFilter = { ...NO_FILTER, search: null, after: null, limit: 100 }
const NO_EVENT_FILTER: EventListFilter = {
  ...{ readableKeys: null, eventKey: null, since: null, until: null },
  ...{ search: null, after: null, limit: 100 },
}
const MAX_PAGES_OF_EVENTS = 1_000
const LONG_AGO = new Date('2020-01-01T00:00:00Z')

describe('the lists of 40,000 events and of their deliveries to one webhook', () => {
  const database = useDatabase()
  let organisationId: string
  let webhookId: string
  let middle: { id: string; createdAt: Date }

  before(async () => {
    ;({ organisationId } = await createMember(database.dataSource))
    const webhook = await createWebhookRow(database.dataSource, {
      organisationId,
      url: 'https://a.example.com/',
    })
    webhookId = webhook.id
    await fill(database.dataSource, organisationId, webhookId)
    const [found] = await database.dataSource.query<[typeof middle]>(
      `SELECT id, created_at AS "createdAt" FROM delivery ORDER BY id OFFSET ${DELIVERIES / 2} LIMIT 1`,
    )
    middle = found
  })

  const FILTERS: [title: string, filter: () => Partial<DeliveryListFilter>][] = [
    ['nothing', () => ({})],
    ['an event key that is rare', () => ({ eventKey: 'customer:updated' })],
    ['an event key that no delivery has', () => ({ eventKey: 'customer:deleted' })],
    ['a status code that is rare', () => ({ statusCode: 503 })],
    ['a status code that no delivery has', () => ({ statusCode: 418 })],
    ['completed', () => ({ state: 'completed' })],
    ['pending', () => ({ state: 'pending' })],
    ['waiting', () => ({ state: 'waiting' })],
    ['failed', () => ({ state: 'failed', statusCode: 418 })],
    ['stopped', () => ({ state: 'stopped' })],
    ['a time long ago', () => ({ until: LONG_AGO })],
    [
      'a time in the middle',
      () => ({ until: middle.createdAt, since: new Date(middle.createdAt.getTime() - 1) }),
    ],
    ['a place in the middle', () => ({ after: middle.id })],
    ['a delivery', () => ({ search: middle.id })],
    ['a trace', () => ({ search: 'trace-77' })],
    ['a trace that no delivery has', () => ({ search: 'nowhere' })],
    ['a trace that all have', () => ({ search: 'trace-of-all' })],
  ]

  for (const [title, filter] of FILTERS) {
    it(`read a page of deliveries by ${title} from indexes, and few pages`, async () => {
      const wanted = { ...NONE, ...filter() }
      const { scanned, pages } = await planOf(database.dataSource, (db) =>
        listDeliveries(db, organisationId, webhookId, wanted),
      )
      expect(scanned).to.deep.equal([])
      expect(pages).to.be.below(MAX_PAGES)
    })
  }

  it('go on where a search ended, and find every delivery that fits once', async () => {
    const seen: string[] = []
    const reached: (number | undefined)[] = []
    let after: string | null = null
    for (;;) {
      const filter: DeliveryListFilter = { ...NONE, eventKey: 'customer:updated', after }
      const { page, last, searchedUntil } = await listDeliveries(
        database.dataSource,
        organisationId,
        webhookId,
        filter,
      )
      seen.push(...page.map(({ id }) => id))
      if (last === null) break
      expect(page.length).to.be.below(NONE.limit)
      reached.push(searchedUntil?.getTime())
      after = last
    }
    const rare = await database.dataSource.query<{ id: string }[]>(
      `SELECT d.id FROM delivery d JOIN event e ON e.id = d.event_id WHERE e.key = 'customer:updated' ORDER BY d.id DESC`,
    )
    expect(rare).to.have.lengthOf(4)
    expect(seen).to.deep.equal(rare.map(({ id }) => id))
    expect(reached).to.have.lengthOf(8)
    expect(reached).to.deep.equal([...reached].sort((a, b) => b! - a!))
  })

  const FILTERS_OF_EVENTS: [title: string, filter: Partial<EventListFilter>][] = [
    ['nothing', {}],
    ['keys of which there are none', { readableKeys: ['invoice:paid'] }],
    ['an event key that is rare', { eventKey: 'customer:updated' }],
    ['a time long ago', { until: LONG_AGO }],
    ['a time in the future', { since: new Date(Date.now() + 3_600_000) }],
    ['a trace', { search: 'trace-77' }],
    ['a trace that no event has', { search: 'nowhere' }],
    ['a trace that all have', { search: 'trace-of-all' }],
  ]
  for (const [title, filter] of FILTERS_OF_EVENTS) {
    it(`read a page of events by ${title} from indexes, and few pages`, async () => {
      const { scanned, pages } = await planOf(database.dataSource, (db) =>
        listEvents(db, organisationId, { ...NO_EVENT_FILTER, ...filter }),
      )
      expect(scanned).to.deep.equal([])
      expect(pages).to.be.below(MAX_PAGES_OF_EVENTS)
    })
  }

  it('go on where a search ended, and find every event that fits once', async () => {
    const seen: string[] = []
    let [after, pages]: [string | null, number] = [null, 0]
    do {
      const filter: EventListFilter = { ...NO_EVENT_FILTER, eventKey: 'customer:updated', after }
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
    expect(pages).to.equal(9)
  })

  it('find the delivery of an event without reading again what other webhooks had of it', async () => {
    const { dataSource } = database
    const url = 'https://b.example.com/'
    const other = await createWebhookRow(dataSource, { organisationId, url })
    await dataSource.query(
      `INSERT INTO delivery (id, event_id, webhook_id, organisation_id, state, attempts, completed_at)
       SELECT uuidv7(), event_id, $2, organisation_id, 'completed', 1, now()
         FROM delivery, generate_series(1, 5000) WHERE id = $1`,
      [middle.id, other.id],
    )
    const [{ eventId }] = await dataSource.query<[{ eventId: string }]>(
      `SELECT event_id AS "eventId" FROM delivery WHERE id = $1`,
      [middle.id],
    )
    const wanted = { ...NONE, search: eventId }
    const { page } = await listDeliveries(dataSource, organisationId, webhookId, wanted)
    expect(page.map(({ id }) => id)).to.deep.equal([middle.id])
    const { pages } = await planOf(dataSource, (db) => listDeliveries(db, organisationId, webhookId, wanted))
    // A hundred have its deliveries.
    expect(pages).to.be.below(170)
  })
})

/**
 * Writes one delivery a second up to now: all completed but for one waiting, failed and stopped in 10,000 each; an event
 * key and a status code that one in 10,000 has.
 */
async function fill(dataSource: DataSource, organisationId: string, webhookId: string): Promise<void> {
  await dataSource.query(
    `INSERT INTO event (id, organisation_id, key, body, emitted_at, trace_id, created_at)
     SELECT uuidv7(age), $1, CASE WHEN n % 10000 = 77 THEN 'customer:updated' ELSE 'customer:created' END, '{}', now() + age,
            CASE WHEN n < 1000 THEN 'trace-' || n ELSE 'trace-of-all' END, now() + age
       FROM generate_series(1, $2::int) n, LATERAL (SELECT (n - $2) * interval '1 second' AS age) e`,
    [organisationId, DELIVERIES],
  )
  await dataSource.query(
    `INSERT INTO delivery (id, event_id, webhook_id, organisation_id, state, attempts, created_at, completed_at,
                           stop_reason, next_attempt_at, sweep_at)
     SELECT uuidv7(e.created_at - now()), e.id, $2, $1, state, 1, e.created_at,
            CASE WHEN state <> 'waiting' THEN e.created_at END,
            CASE WHEN state = 'stopped' THEN 'discarded' END,
            CASE WHEN state = 'waiting' THEN now() + interval '1 hour' END,
            CASE WHEN state = 'waiting' THEN now() + interval '2 hours' END
       FROM (SELECT *, row_number() OVER (ORDER BY sequence) AS n FROM event) e,
            LATERAL (SELECT CASE n % 10000 WHEN 1 THEN 'waiting' WHEN 2 THEN 'failed' WHEN 3 THEN 'stopped'
                                           ELSE 'completed' END AS state) s
      ORDER BY n`,
    [organisationId, webhookId],
  )
  await dataSource.query(
    `INSERT INTO attempt (delivery_id, webhook_id, number, trigger, url, started_at, duration_ms, outcome, status_code)
     SELECT id, webhook_id, 1, 'schedule', 'https://a.example.com/', created_at, 40,
            CASE state WHEN 'completed' THEN 'succeeded' ELSE 'failed' END, CASE state WHEN 'failed' THEN 503 ELSE 200 END
       FROM delivery`,
  )
  for (const table of ['event', 'delivery', 'attempt', 'webhook']) await dataSource.query(`ANALYZE ${table}`)
}

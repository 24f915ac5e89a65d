import { expect } from 'chai'
import type { WebhookRow } from '../../../src/db/queries/webhooks.ts'
import { DELIVERY_STATES } from '../../../src/domain/delivery-state.ts'
import { type ApiResponse, useApi } from '../../helpers/api/api.ts'
import {
  createMember,
  createWebhookRow,
  publishRow,
  type TestMember,
} from '../../helpers/database/factories.ts'
import { setRow } from '../../helpers/deliveries/set-row.ts'
import { attempt } from './delivery-rows.ts'

type Delivery = {
  id: string
  state: string
  eventId: string
  eventKey: string
  createdAt: string
  attemptCount: number
  latestAttempt: { number: number; error: string | null } | null
}

/** A page of deliveries as the API shows it. */
type DeliveryPage = { data: Delivery[]; nextCursor: string | null; searchedUntil: string | null }

describe('GET /webhooks/:id/deliveries', () => {
  const suite = useApi()
  let member: TestMember
  let webhook: WebhookRow

  beforeEach(async () => {
    member = await createMember(suite.database.dataSource)
    const { organisationId } = member
    webhook = await createWebhookRow(suite.database.dataSource, {
      organisationId,
      url: 'https://receiver.example.com/',
    })
  })

  const list = (query = '', options: { apiKey?: string; id?: string } = {}): Promise<ApiResponse> => {
    const path = `/api/orgs/${member.organisationId}/webhooks/${options.id ?? webhook.id}/deliveries`
    return suite.api.call('GET', `${path}${query}`, { apiKey: options.apiKey ?? member.apiKey })
  }

  async function page(query = ''): Promise<DeliveryPage> {
    const answer = await list(query)
    expect(answer.status, answer.text).to.equal(200)
    return answer.json as DeliveryPage
  }

  async function publish(eventKey?: string) {
    const options = eventKey === undefined ? {} : { eventKey }
    const deliveries = await publishRow(suite.database.dataSource, member.organisationId, options)
    return deliveries.find(({ webhookId }) => webhookId === webhook.id)!
  }

  async function publishMany(count: number): Promise<string[]> {
    const ids: string[] = []
    for (let index = 0; index < count; index++) ids.push((await publish()).deliveryId)
    return ids
  }

  const ids = ({ data }: DeliveryPage): string[] => data.map(({ id }) => id)

  it('shows each delivery with its state and how often it was attempted, and nothing more', async () => {
    const waiting = await publish('invoice:paid')
    const startedAt = new Date()
    await attempt(suite.database.dataSource, waiting, 1, { startedAt })
    const done = await publish()
    await attempt(suite.database.dataSource, done, 1, { next: 'completed' })
    const [{ event_id: eventId, created_at: createdAt, next_attempt_at: nextAttemptAt }] =
      await suite.database.dataSource.query<[{ event_id: string; created_at: Date; next_attempt_at: Date }]>(
        'SELECT event_id, created_at, next_attempt_at FROM delivery WHERE id = $1',
        [waiting.deliveryId],
      )

    const { data } = await page()
    expect(data[1]).to.deep.equal({
      id: waiting.deliveryId,
      webhookId: webhook.id,
      eventId,
      eventKey: 'invoice:paid',
      state: 'waiting',
      attemptCount: 1,
      nextAttemptAt: nextAttemptAt.toISOString(),
      isTest: false,
      pausedSince: null,
      createdAt: createdAt.toISOString(),
      completedAt: null,
      stopReason: null,
      traceId: 'trace-1',
      latestAttempt: {
        number: 1,
        startedAt: startedAt.toISOString(),
        durationMs: 12,
        outcome: 'failed',
        statusCode: 503,
        failureCode: 'http_status',
        error: 'The endpoint answered HTTP 503.',
      },
    })
    expect(data[0]).to.include({ id: done.deliveryId, state: 'completed', nextAttemptAt: null })
    expect(data[0])
      .to.have.property('completedAt')
      .that.matches(/^\d{4}-.+\.\d{3}Z$/)
  })

  it('shows the deliveries of this webhook only', async () => {
    const other = await createWebhookRow(suite.database.dataSource, {
      organisationId: member.organisationId,
      url: 'https://other.example.com/',
    })
    const { deliveryId } = await publish()
    expect(ids(await page())).to.deep.equal([deliveryId])
    expect(ids((await list('', { id: other.id })).json as DeliveryPage)).to.not.include(deliveryId)
  })

  it('gives every delivery once, newest first, page by page', async () => {
    const published = await publishMany(7)
    const seen: string[] = []
    const sizes: number[] = []
    let query = '?limit=3'
    for (;;) {
      const { data, nextCursor } = await page(query)
      seen.push(...data.map(({ id }) => id))
      sizes.push(data.length)
      if (nextCursor === null) break
      query = `?limit=3&cursor=${nextCursor}`
    }
    expect(seen).to.deep.equal([...published].reverse())
    expect(sizes).to.deep.equal([3, 3, 1])
  })

  it('neither repeats nor skips a delivery when others are published between two pages', async () => {
    const published = await publishMany(4)
    const first = await page('?limit=2')
    const late = await publishMany(3)
    const second = await page(`?limit=2&cursor=${first.nextCursor!}`)
    expect([...ids(first), ...ids(second)]).to.deep.equal([...published].reverse())
    expect(second.nextCursor).to.equal(null)
    expect(ids(await page('?limit=3'))).to.deep.equal([...late].reverse())
  })

  it('continues at a cursor whose delivery is gone', async () => {
    const [oldest, , newer, newest] = await publishMany(4)
    const { nextCursor } = await page('?limit=2')
    await suite.database.dataSource.query('DELETE FROM delivery WHERE id = $1', [newer])
    const rest = ids(await page(`?cursor=${nextCursor!}`))
    expect(rest).to.have.lengthOf(2)
    expect(rest.at(-1)).to.equal(oldest)
    expect(rest).to.not.include(newest)
  })

  describe('limit', () => {
    it('defaults to 50 and accepts 1 to 100', async () => {
      await publishMany(101)
      expect(ids(await page())).to.have.lengthOf(50)
      expect(ids(await page('?limit=1'))).to.have.lengthOf(1)
      const most = await page('?limit=100')
      expect(most.data).to.have.lengthOf(100)
      expect((await page(`?limit=100&cursor=${most.nextCursor!}`)).data).to.have.lengthOf(1)
    })
  })

  it('names every bad parameter at once, and a hundred at most', async () => {
    const several = await list('?limit=0&state=x&since=x&colour=red')
    expect(
      (several.json as { errors: { pointer: string }[] }).errors.map(({ pointer }) => pointer),
    ).to.have.members(['/limit', '/state', '/since', '/colour'])
    const names = Array.from({ length: 500 }, (_, index) => `p${index}`)
    const many = await list(`?${names.join('&')}`)
    expect(many.status).to.equal(422)
    expect((many.json as { errors: object[] }).errors).to.have.lengthOf(100)
  })

  it('accepts the earliest and the latest time that can be written', async () => {
    await publish()
    const latest = '9999-12-31T23:59:59.999999999Z'
    expect((await page(`?since=0000-01-01T00:00:00Z&until=${latest}`)).data).to.have.lengthOf(1)
    const beyond = await list(`?since=0000-01-01T00:00:00%2B23:59&until=9999-12-31T23:59:59-23:59`)
    expect((beyond.json as { errors: { code: string }[] }).errors.map(({ code }) => code)).to.deep.equal([
      'wrong_format',
      'wrong_format',
    ])
  })

  describe('filters', () => {
    it('select each state', async () => {
      const published = await publishMany(DELIVERY_STATES.length)
      for (const [index, state] of DELIVERY_STATES.entries())
        await setRow(suite.database.dataSource, published[index]!, { state })
      for (const [index, state] of DELIVERY_STATES.entries()) {
        const { data } = await page(`?state=${state}`)
        expect(
          data.map(({ id }) => id),
          state,
        ).to.deep.equal([published[index]])
      }
    })

    it('select an event key, test events included', async () => {
      const paid = await publish('invoice:paid')
      const test = await publish('webhook:test')
      await publish('customer:created')
      expect(ids(await page('?eventKey=invoice:paid'))).to.deep.equal([paid.deliveryId])
      expect(ids(await page('?eventKey=invoice%3Apaid'))).to.deep.equal([paid.deliveryId])
      expect(ids(await page('?eventKey=webhook:test'))).to.deep.equal([test.deliveryId])
      expect(ids(await page('?eventKey=invoice'))).to.deep.equal([])
    })

    it('select a time from `since` inclusive to `until` exclusive', async () => {
      const published = await publishMany(3)
      const times = ['2026-03-01T10:00:00.000Z', '2026-03-01T11:00:00.000Z', '2026-03-01T12:00:00.000Z']
      for (const [index, time] of times.entries()) {
        // Microseconds are kept, milliseconds are shown: the time as it is shown is to include the row.
        // An id has the time of its row.
        const [rows] = await suite.database.dataSource.query<[{ id: string }[]]>(
          `UPDATE delivery SET created_at = $2::timestamptz + interval '7 microseconds',
                  id = uuidv7($2::timestamptz - now()) WHERE id = $1 RETURNING id`,
          [published[index], time],
        )
        published[index] = rows[0]!.id
      }
      const [first, second, third] = published
      expect(ids(await page(`?since=${times[1]!}`))).to.deep.equal([third, second])
      expect(ids(await page(`?until=${times[1]!}`))).to.deep.equal([first])
      expect(ids(await page(`?since=${times[1]!}&until=${times[2]!}`))).to.deep.equal([second])
      expect(ids(await page('?since=2026-03-01T13:00:00%2B02:00&until=2026-03-01T11:30:00Z'))).to.deep.equal([
        second,
      ])
      expect(ids(await page(`?since=${times[2]!}&until=${times[0]!}`))).to.deep.equal([])
    })

    it('select by the failure code and the time of any attempt, within one of them', async () => {
      const [lost, slow, refused] = await publishMany(3)
      const attempted = (deliveryId: string, number: number, code: string | null, startedAt: string) =>
        suite.database.dataSource.query(
          `INSERT INTO attempt (delivery_id, number, webhook_id, trigger, url, started_at, duration_ms, outcome, failure_code)
           SELECT id, $2::int, webhook_id, 'schedule', 'https://a.example/', $4, 5,
                  CASE WHEN $3::text IS NULL THEN 'succeeded' ELSE 'failed' END, $3 FROM delivery WHERE id = $1`,
          [deliveryId, number, code, startedAt],
        )
      await attempted(lost!, 1, 'tls_error', '2098-03-01T10:00:00Z')
      await attempted(lost!, 2, null, '2098-03-01T11:00:00Z')
      await attempted(slow!, 1, 'timeout', '2098-03-01T10:30:00Z')
      await attempted(refused!, 1, 'tls_error', '2098-03-01T11:30:00Z')
      expect(ids(await page('?failureCode=tls_error'))).to.deep.equal([refused, lost])
      expect(ids(await page('?attemptedSince=2098-03-01T10:30:00Z'))).to.deep.equal([refused, slow, lost])
      expect(ids(await page('?attemptedUntil=2098-03-01T10:30:00Z'))).to.deep.equal([lost])
      const [from, until] = ['attemptedSince=2098-03-01T10:30:00Z', 'attemptedUntil=2099-01-01T00:00:00Z']
      expect(ids(await page(`?${from}&${until}&failureCode=tls_error`))).to.deep.equal([refused])
      expect((await list('?failureCode=unheard_of')).status).to.equal(422)
    })

    it('combine, and apply to every page', async () => {
      const wanted: string[] = []
      for (let index = 0; index < 3; index++) {
        await attempt(suite.database.dataSource, await publish('invoice:paid'), 1, { next: 'completed' })
        const paid = await publish('invoice:paid')
        await attempt(suite.database.dataSource, paid, 1, { next: 'failed' })
        wanted.unshift(paid.deliveryId)
        await attempt(suite.database.dataSource, await publish(), 1, { next: 'failed' })
      }
      const filters = 'state=failed&eventKey=invoice:paid&limit=2'
      const first = await page(`?${filters}`)
      const second = await page(`?${filters}&cursor=${first.nextCursor!}`)
      expect([...ids(first), ...ids(second)]).to.deep.equal(wanted)
    })
  })

  describe('searched', () => {
    it('selects by the answer to the latest attempt', async () => {
      const refused = await publish()
      await attempt(suite.database.dataSource, refused, 1)
      const repaired = await publish()
      await attempt(suite.database.dataSource, repaired, 1)
      await attempt(suite.database.dataSource, repaired, 2, { next: 'completed' })
      const unreachable = await publish()
      await attempt(suite.database.dataSource, unreachable, 1, { statusCode: null, failureCode: 'timeout' })
      await publish()
      expect(ids(await page('?statusCode=503'))).to.deep.equal([refused.deliveryId])
      expect(ids(await page('?statusCode=200'))).to.deep.equal([repaired.deliveryId])
      expect(ids(await page('?statusCode=503&state=completed'))).to.deep.equal([])
      const [latest] = (await page('?statusCode=200')).data
      expect(latest!.latestAttempt).to.include({ number: 2, error: null })
    })

    it('finds exactly a delivery, the delivery of an event, and those of a trace', async () => {
      const first = await publish()
      const second = await publish()
      await suite.database.dataSource.query(
        `UPDATE event SET trace_id = 'trace-2' WHERE id = (SELECT event_id FROM delivery WHERE id = $1)`,
        [second.deliveryId],
      )
      const [shown] = (await page(`?search=${first.deliveryId}`)).data
      expect(shown!.id).to.equal(first.deliveryId)
      expect(ids(await page(`?search=${shown!.eventId}`))).to.deep.equal([first.deliveryId])
      expect(ids(await page('?search=trace-2'))).to.deep.equal([second.deliveryId])
      expect(ids(await page('?search=trace-2&state=pending'))).to.deep.equal([second.deliveryId])
      for (const none of ['search=trace-2&state=failed', 'search=trace', `search=${webhook.id}`])
        expect(await page(`?${none}`), none).to.deep.equal({
          data: [],
          nextCursor: null,
          searchedUntil: null,
        })
    })

    it('finds nothing of another webhook or another organisation', async () => {
      const { organisationId } = await createMember(suite.database.dataSource)
      await createWebhookRow(suite.database.dataSource, { organisationId, url: 'https://other.example.com/' })
      const theirs = (await publishRow(suite.database.dataSource, organisationId))[0]!
      const own = await publish()
      const url = 'https://second.example.com/'
      webhook = await createWebhookRow(suite.database.dataSource, {
        organisationId: member.organisationId,
        url,
      })
      for (const search of [theirs.deliveryId, own.deliveryId, 'trace-1'])
        expect(ids(await page(`?search=${search}`)), search).to.deep.equal([])
    })

    it('lists stopped test events among the stopped deliveries, in their order', async () => {
      const deliveries = [await publish(), await publish(), await publish()]
      const deliveryIds = deliveries.map(({ deliveryId }) => deliveryId)
      await setRow(suite.database.dataSource, deliveryIds, { state: 'stopped' })
      await suite.database.dataSource.query('UPDATE delivery SET is_test = true WHERE id = $1', [
        deliveryIds[1],
      ])
      expect(ids(await page('?state=stopped'))).to.deep.equal(deliveryIds.toReversed())
    })
  })
})

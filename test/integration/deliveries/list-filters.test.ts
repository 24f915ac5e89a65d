import { expect } from 'chai'
import { DELIVERY_STATES } from '../../../src/domain/delivery-state.ts'
import { setRow } from '../../helpers/deliveries/set-row.ts'
import { useDeliveryList } from '../../helpers/deliveries/use-delivery-list.ts'
import { attempt } from './delivery-rows.ts'

describe('the filters of GET /webhooks/:id/deliveries', () => {
  const { suite, list, page, publish, publishMany, ids } = useDeliveryList()

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

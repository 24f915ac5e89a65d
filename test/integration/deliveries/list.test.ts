import { expect } from 'chai'
import { createWebhookRow } from '../../helpers/database/factories.ts'
import { attempt } from './delivery-rows.ts'
import { useDeliveryList, type DeliveryPage } from '../../helpers/deliveries/use-delivery-list.ts'

describe('GET /webhooks/:id/deliveries', () => {
  const { suite, made, list, page, publish, publishMany, ids } = useDeliveryList()

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
      webhookId: made.webhook.id,
      eventId,
      eventKey: 'invoice:paid',
      state: 'waiting',
      attemptCount: 1,
      nextAttemptAt: nextAttemptAt.toISOString(),
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

  it('answers an empty page for a webhook without deliveries', async () => {
    expect(await page()).to.deep.equal({ data: [], nextCursor: null, searchedUntil: null })
  })

  it('shows the deliveries of this webhook only', async () => {
    const other = await createWebhookRow(suite.database.dataSource, {
      organisationId: made.member.organisationId,
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

  it('ends with a full page when nothing follows it', async () => {
    await publishMany(3)
    expect((await page('?limit=3')).nextCursor).to.equal(null)
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
    for (const since of ['0000-01-01T00:00:00Z', '0000-01-01T00:00:00%2B23:59']) {
      expect((await page(`?since=${since}&until=9999-12-31T23:59:59.999999999-23:59`)).data).to.have.lengthOf(
        1,
      )
    }
  })
})

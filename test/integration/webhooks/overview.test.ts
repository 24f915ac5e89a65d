import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import type { Static } from 'typebox'
import type {
  ActivityListSchema,
  ActivitySchema,
  OverviewListSchema,
} from '../../../src/http/schemas/overview.ts'
import {
  createMember,
  createWebhookRow,
  publishRow,
  type TestMember,
} from '../../helpers/database/factories.ts'
import { setRow } from '../../helpers/deliveries/set-row.ts'
import { useApi } from '../../helpers/api/api.ts'

const HOUR_MS = 3_600_000

type Made = { number: number; outcome: 'succeeded' | 'failed'; startedAt: string; durationMs?: number }

describe('the overview of webhooks', () => {
  const suite = useApi()
  let member: TestMember
  let webhookId: string
  beforeEach(async () => {
    member = await createMember(suite.database.dataSource)
    const { organisationId } = member
    webhookId = (
      await createWebhookRow(suite.database.dataSource, { organisationId, url: 'https://a.example/' })
    ).id
  })

  /** A delivery that was accepted at `createdAt`, with the attempts it had. All are SQL expressions. */
  async function delivered(
    createdAt: string,
    attempts: Made[],
    state: 'completed' | 'waiting' | 'failed' = 'completed',
  ): Promise<void> {
    const { dataSource } = suite.database
    const [delivery] = await publishRow(dataSource, member.organisationId)
    const { deliveryId } = delivery!
    await setRow(dataSource, deliveryId, { state, attempts: Math.max(attempts.length, 1) })
    await dataSource.query(`UPDATE delivery SET created_at = ${createdAt} WHERE id = $1`, [deliveryId])
    for (const { number, outcome, startedAt, durationMs = 0 } of attempts)
      await dataSource.query(
        `INSERT INTO attempt (delivery_id, number, webhook_id, trigger, url, started_at, duration_ms, outcome)
         VALUES ($1, $2, $3, 'schedule', 'https://a.example/', ${startedAt}, $4, $5)`,
        [deliveryId, number, webhookId, durationMs, outcome],
      )
  }
  const get = async <T>(path: string): Promise<T> => {
    const { status, json } = await suite.api.call(
      'GET',
      `/api/orgs/${member.organisationId}/webhooks${path}`,
      {
        apiKey: member.apiKey,
      },
    )
    expect(status).to.equal(200)
    return json as T
  }
  const activity = () => get<Static<typeof ActivitySchema>>(`/${webhookId}/activity`)
  const thisHour = `date_trunc('hour', now(), 'UTC')`

  /** What is compared within an hour does not begin at its end. */
  const awayFromTheFullHour = async (): Promise<void> => {
    const leftMs = HOUR_MS - (Date.now() % HOUR_MS)
    if (leftMs < 5_000) await delay(leftMs + 100)
  }

  it('shows 24 hours, the current one last, each with its attempts by outcome', async () => {
    await awayFromTheFullHour()
    const [early, late, before] = [
      `${thisHour} - interval '23 hours'`,
      thisHour,
      `${thisHour} - interval '23 hours 1 second'`,
    ]
    await delivered(early, [
      { number: 1, outcome: 'failed', startedAt: early },
      { number: 2, outcome: 'succeeded', startedAt: late },
    ])
    await delivered(before, [{ number: 1, outcome: 'failed', startedAt: before }])
    const { buckets } = await activity()
    const counts = buckets.map(({ succeeded, failed }) => [succeeded, failed])
    const nothing = Array.from({ length: 22 }, () => [0, 0])
    expect(counts).to.deep.equal([[0, 1], ...nothing, [1, 0]])
    const times = buckets.map(({ startedAt }) => Date.parse(startedAt))
    expect(times.every((time, index) => time === times[0]! + index * HOUR_MS)).to.equal(true)
    expect(times.at(-1)).to.equal(Math.floor(Date.now() / HOUR_MS) * HOUR_MS)
  })

  it('shows an hour, a day or a week in buckets, with p95 and failures of that time', async () => {
    const ranges = { '1h': [12, 300_000], '24h': [24, 3_600_000], '7d': [28, 21_600_000] } as const
    const failed = { number: 1, outcome: 'failed' } as const
    await delivered(`now() - interval '7 days'`, [
      { number: 2, outcome: 'succeeded', startedAt: 'now()', durationMs: 40 },
      { ...failed, startedAt: `now() - interval '2 hours'`, durationMs: 700 },
    ])
    await delivered(`now() - interval '7 days'`, [
      { ...failed, startedAt: `now() - interval '3 days'`, durationMs: 900 },
    ])
    await suite.database.dataSource.query(
      `UPDATE attempt SET failure_code = 'timeout' WHERE outcome = 'failed' AND webhook_id = $1`,
      [webhookId],
    )
    const found: unknown[] = []
    for (const [range, [count, bucketMs]] of Object.entries(ranges)) {
      const shown = await get<Static<typeof ActivitySchema>>(`/${webhookId}/activity?range=${range}`)
      expect(shown).to.deep.include({ bucketMs, isCapped: false })
      const times = shown.buckets.map(({ startedAt }) => Date.parse(startedAt))
      expect(times).to.have.lengthOf(count)
      expect(times.every((time, index) => time === times[0]! + index * bucketMs)).to.equal(true)
      expect(times.at(-1)).to.be.within(Date.now() - bucketMs - 1_000, Date.now())
      const sum = shown.buckets.reduce((total, { succeeded, failed }) => total + succeeded + failed, 0)
      found.push([sum, shown.p95DurationMs, shown.failures.failedAttempts])
    }
    expect(found).to.deep.equal([
      [1, 40, 0],
      [2, 700, 1],
      [3, 900, 2],
    ])
  })

  it('reports the latency of first attempts from acceptance to end, and of no others', async () => {
    const acceptedAt = `'${new Date(Date.now() - 60_000).toISOString()}'::timestamptz`
    for (let index = 1; index <= 100; index++)
      await delivered(acceptedAt, [
        {
          number: 1,
          outcome: index % 2 === 0 ? 'failed' : 'succeeded',
          startedAt: `${acceptedAt} + interval '1 second'`,
          durationMs: index,
        },
        { number: 2, outcome: 'succeeded', startedAt: 'now()', durationMs: 9_000 },
      ])
    const { firstAttempt } = await activity()
    expect(firstAttempt.count).to.equal(100)
    expect(firstAttempt.p50Ms).to.be.within(1_049, 1_052)
    expect(firstAttempt.p99Ms).to.be.within(1_098, 1_101)
  })

  it('gives the hours of every webhook, in the order of the webhooks', async () => {
    await awayFromTheFullHour()
    const { organisationId } = member
    const url = 'https://b.example/'
    const other = await createWebhookRow(suite.database.dataSource, { organisationId, url })
    await delivered(thisHour, [{ number: 1, outcome: 'failed', startedAt: thisHour }])
    const { data } = await get<Static<typeof ActivityListSchema>>('/activity')
    expect(data.map((row) => row.webhookId)).to.deep.equal([webhookId, other.id])
    expect(data[0]!.buckets).to.deep.equal((await activity()).buckets)
    expect(data[0]!.buckets.at(-1)).to.include({ succeeded: 0, failed: 1 })
    expect(data[1]!.buckets.map(({ succeeded, failed }) => succeeded + failed)).to.deep.equal(
      Array(24).fill(0),
    )
  })

  it('counts fewer attempts of each webhook where there are many, and says so', async () => {
    await delivered('now()', [{ number: 1, outcome: 'failed', startedAt: 'now()' }])
    await suite.database.dataSource.query(
      `INSERT INTO attempt (delivery_id, number, webhook_id, trigger, url, started_at, duration_ms, outcome)
       SELECT delivery_id, later, webhook_id, trigger, url, started_at, 0, outcome
         FROM attempt, generate_series(2, 250) AS later WHERE webhook_id = $1`,
      [webhookId],
    )
    await suite.database.dataSource.query(
      `INSERT INTO webhook SELECT (jsonb_populate_record(webhook, jsonb_build_object('id', gen_random_uuid()))).*
         FROM webhook, generate_series(2, 1000) WHERE id = $1`,
      [webhookId],
    )
    const failed = ({ buckets }: Pick<Static<typeof ActivitySchema>, 'buckets'>) =>
      buckets.reduce((sum, bucket) => sum + bucket.failed, 0)
    const { data } = await get<Static<typeof ActivityListSchema>>('/activity')
    const ofAll = data.filter((row) => row.isCapped)
    expect(ofAll.map((row) => [row.webhookId, failed(row)])).to.deep.equal([[webhookId, 200]])
    const one = await activity()
    expect([failed(one), one.isCapped]).to.deep.equal([250, false])
  })

  it('tells a degraded webhook from a failing one, with the share and p95 of its recent attempts', async () => {
    const { dataSource } = suite.database
    for (let index = 1; index <= 46; index++)
      await delivered('now()', [
        {
          number: 1,
          outcome: 'succeeded',
          startedAt: `now() - ${index} * interval '1 second'`,
          durationMs: index,
        },
      ])
    for (let index = 1; index <= 4; index++)
      await delivered('now()', [
        { number: 1, outcome: 'failed', startedAt: `now() - interval '2 minutes'`, durationMs: 900 },
      ])
    await delivered('now()', [{ number: 1, outcome: 'failed', startedAt: `now() - interval '25 hours'` }])
    const row = async () => (await get<Static<typeof OverviewListSchema>>('/overview')).data[0]!
    expect((await row()).status).to.equal('healthy')
    await dataSource.query(
      `INSERT INTO incident (id, organisation_id, webhook_id, opened_at)
       VALUES (gen_random_uuid(), $1, $2, now() - interval '2 minutes')`,
      [member.organisationId, webhookId],
    )
    expect(await row()).to.deep.include({
      status: 'degraded',
      recent: { attempts: 50, succeeded: 46, p95DurationMs: 900 },
    })
    await delivered('now()', [{ number: 1, outcome: 'failed', startedAt: 'now()' }])
    expect((await row()).status).to.equal('degraded')
    await dataSource.query(`UPDATE incident SET opened_at = now() - interval '1 millisecond'`)
    await delivered('now()', [{ number: 1, outcome: 'failed', startedAt: 'now()' }])
    expect((await row()).status).to.equal('failing')
  })

  it('gives every webhook with its counts, latest attempt and open incident, and no payload', async () => {
    const { dataSource } = suite.database
    const other = await createWebhookRow(dataSource, {
      organisationId: member.organisationId,
      url: 'https://b.example/',
      subscribedEventKeys: ['invoice:paid'],
      enabled: false,
    })
    await delivered('now()', [{ number: 1, outcome: 'failed', startedAt: 'now()' }], 'waiting')
    await delivered('now()', [], 'failed')
    const [queued] = await publishRow(dataSource, member.organisationId)
    await dataSource.query(`UPDATE delivery SET created_at = now() - interval '1 hour' WHERE id = $1`, [
      queued!.deliveryId,
    ])
    await dataSource.query(
      `INSERT INTO incident (id, organisation_id, webhook_id) VALUES (gen_random_uuid(), $1, $2)`,
      [member.organisationId, webhookId],
    )
    const { data } = await get<Static<typeof OverviewListSchema>>('/overview')
    const [first, second] = data
    expect(first).to.deep.include({ id: webhookId, waitingForRetry: 1, permanentlyFailed: 1 })
    expect(first?.waitingForFirstAttempt).to.equal(1)
    expect(first?.oldestWaitingForFirstAttemptMs).to.be.within(3_600_000, 3_660_000)
    expect(first?.latestAttempt).to.include({ eventKey: 'customer:created', number: 1, outcome: 'failed' })
    expect(first?.latestAttempt).to.not.have.property('payload')
    expect(first?.openIncident?.openedAt).to.be.a('string')
    expect(second).to.deep.include({
      id: other.id,
      enabled: false,
      waitingForFirstAttempt: 0,
      oldestWaitingForFirstAttemptMs: null,
      waitingForRetry: 0,
      permanentlyFailed: 0,
      latestAttempt: null,
      openIncident: null,
    })
  })
})

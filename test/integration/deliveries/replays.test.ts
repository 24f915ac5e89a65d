import { mock } from 'node:test'
import { expect } from 'chai'
import { advanceRetryJob } from '../../../src/deliveries/retry/advance-retry-job.ts'
import { purgeDeliveries, FROM_THE_OLDEST } from '../../../src/db/queries/retention.ts'
import { useApi } from '../../helpers/api/api.ts'
import {
  createMember,
  createWebhookRow,
  publishRow,
  type TestMember,
} from '../../helpers/database/factories.ts'
import {
  attemptAsWorkflows,
  attemptDependencies,
  attemptRequest,
  NO_SIGNALS,
} from '../../helpers/deliveries/attempts.ts'
import { eventually } from '../../helpers/eventually.ts'
import { createReceiver, type Receiver } from '../../helpers/receivers/receiver.ts'
import { openTransaction } from '../../helpers/database/database.ts'

type Job = { id: string; state: string; total: number; done: number; succeeded: number; failed: number }

const SINCE = '2026-01-01T00:00:00.000Z'

describe('POST replays', () => {
  const suite = useApi()
  let member: TestMember
  let receiver: Receiver
  let webhookId: string

  beforeEach(async () => {
    receiver = await createReceiver()
    member = await createMember(suite.database.dataSource)
  })
  afterEach(() => receiver.close())

  const publish = async (count: number, eventKey = 'customer:created'): Promise<void> => {
    for (let index = 0; index < count; index++)
      await publishRow(suite.database.dataSource, member.organisationId, { eventKey })
  }
  const newWebhook = async (subscribedEventKeys = ['*']): Promise<string> => {
    const { organisationId } = member
    const options = { organisationId, url: receiver.url, subscribedEventKeys }
    return (webhookId = (await createWebhookRow(suite.database.dataSource, options)).id)
  }
  const call = (method: string, path: string, body?: unknown) =>
    suite.api.call(method, `/api/orgs/${member.organisationId}/webhooks/${webhookId}${path}`, {
      ...member,
      body,
    })
  async function start(body: object = {}): Promise<Job> {
    const { status, json, text } = await call('POST', '/replays', { since: SINCE, ...body })
    expect(status, text).to.equal(202)
    return json as Job
  }
  async function count(body: object = {}): Promise<Record<string, unknown>> {
    const { status, json, text } = await call('POST', '/replays', { since: SINCE, dryRun: true, ...body })
    expect(status, text).to.equal(200)
    return json as Record<string, unknown>
  }
  const read = async (job: Job): Promise<Job> => (await call('GET', `/replays/${job.id}`)).json as Job
  const rows = () =>
    suite.database.dataSource.query<{ id: string; eventId: string; state: string }[]>(
      `SELECT id, event_id AS "eventId", state FROM delivery WHERE webhook_id = $1 ORDER BY id`,
      [webhookId],
    )

  const workflows = { wake: () => Promise.resolve() }
  /** Takes a step of a replay to an endpoint that takes six POSTs at once. */
  const step = (job: Job) =>
    advanceRetryJob(
      { ...attemptDependencies(suite.database.dataSource), workflows, endpoints: { limit: () => 6 } },
      { organisationId: member.organisationId, jobId: job.id },
      NO_SIGNALS.shutDown,
    )

  /** Makes the first attempts that are pending, as a worker does. Returns how many. */
  async function attemptPending(): Promise<number> {
    const open = attemptDependencies(suite.database.dataSource)
    const attempt = attemptAsWorkflows(open)
    const pending = (await rows()).filter(({ state }) => state === 'pending')
    const { organisationId } = member
    for (const { id: deliveryId } of pending)
      await attempt(attemptRequest({ organisationId, webhookId, deliveryId }, { queue: 'retry' }))
    await open.httpClient.close()
    return pending.length
  }
  async function run(job: Job): Promise<Job> {
    while ((await step(job)).isRunning) expect(await attemptPending()).to.be.at.most(3)
    return read(job)
  }

  it('sends events from before the webhook was created, a few at a time, with the bytes they have', async () => {
    await publish(7)
    await newWebhook()
    expect(await count()).to.include({ total: 7, isTotalExact: true })
    const job = await start()
    expect(job).to.include({ state: 'running', total: 7, done: 0 })
    expect(await run(job)).to.include({ state: 'done', total: 7, done: 7, succeeded: 7, failed: 0 })
    const bodies = await suite.database.dataSource.query<{ body: Buffer }[]>(
      'SELECT body FROM event WHERE organisation_id = $1 ORDER BY sequence',
      [member.organisationId],
    )
    expect(receiver.posts.map(({ body }) => body.toString())).to.deep.equal(
      bodies.map(({ body }) => body.toString()),
    )
    expect(await count()).to.include({ total: 0 })
  })

  it('leaves out what the webhook has a delivery of, and with include all sends it once more', async () => {
    await publish(2)
    await newWebhook()
    await publish(1)
    await attemptPending()
    expect(await count()).to.include({ total: 2 })
    const job = await start({ include: 'all' })
    expect(await run(job)).to.include({ total: 3, done: 3, succeeded: 3 })
    const deliveries = await rows()
    expect(deliveries).to.have.length(4)
    expect(new Set(deliveries.map(({ eventId }) => eventId))).to.have.length(3)
    const sent = receiver.posts.map(({ headers }) => headers['x-webhook-event-id'])
    expect(sent).to.have.members(deliveries.map(({ id }) => id))
  })

  it('sends each event once more with include all, also where the endpoint takes more at once than are left', async () => {
    await newWebhook()
    await publish(4)
    await attemptPending()
    expect(await run(await start({ include: 'all' }))).to.include({ total: 4, done: 4, succeeded: 4 })
    const deliveries = await rows()
    expect(deliveries).to.have.length(8)
    expect(receiver.posts).to.have.length(8)
  })

  it('sends what the subscription covers when it is sent, and only the keys that are named', async () => {
    await publish(2)
    await publish(2, 'invoice:paid')
    await publish(2, 'invoice:sent')
    await newWebhook(['customer:created', 'invoice:paid'])
    expect(await count()).to.include({ total: 4 })
    expect(await count({ eventKeys: ['invoice:paid'] })).to.include({ total: 2 })
    const job = await start()
    expect((await call('PATCH', '', { subscribedEventKeys: ['invoice:paid'] })).status).to.equal(200)
    expect(await run(job)).to.include({ state: 'done', done: 4, succeeded: 2 })
    const refused = await call('POST', '/replays', { since: SINCE, eventKeys: ['customer:created'] })
    expect(refused.json).to.include({ status: 409, code: 'not_subscribed' })
  })

  it('keeps to its range, and says from when on events are kept', async () => {
    await publish(2)
    await suite.database.dataSource.query(
      // Of all organisations: their sequence numbers are in one order.
      `UPDATE event SET created_at = now() - interval '2 hours'`,
    )
    await publish(3)
    await newWebhook()
    const hourAgo = new Date(Date.now() - 3_600_000).toISOString()
    expect(await count({ since: hourAgo })).to.include({ total: 3, since: hourAgo })
    expect(await count({ until: hourAgo })).to.include({ total: 2, until: hourAgo })
    const { since, until } = await count({ include: 'all', until: '2100-01-01T00:00:00.000Z' })
    expect(Date.parse(String(since))).to.be.closeTo(Date.now() - 7_200_000, 60_000)
    expect(Date.parse(String(until))).to.be.closeTo(Date.now(), 60_000)
  })

  it("lasts until now by PostgreSQL's clock, whatever the machine's own says", async () => {
    await newWebhook()
    await publish(1)
    const since = new Date(Date.now() - 60_000).toISOString()
    mock.timers.enable({ apis: ['Date'], now: Date.now() - 3_600_000 })
    try {
      expect(await count({ since, include: 'all' })).to.include({ total: 1 })
    } finally {
      mock.timers.reset()
    }
  })

  it('does not take an event for missing whose delivery was purged', async () => {
    const { dataSource } = suite.database
    await newWebhook()
    const first = webhookId
    await newWebhook()
    await publish(1)
    await attemptPending()
    await dataSource.query(
      `WITH aged AS (UPDATE event SET created_at = now() - interval '31 days' WHERE organisation_id = $1)
       UPDATE delivery SET completed_at = now() - interval '31 days' WHERE webhook_id = $2`,
      [member.organisationId, webhookId],
    )
    await purgeDeliveries(dataSource, 'completed', { days: 30, after: FROM_THE_OLDEST, limit: 10 })
    expect(await rows()).to.have.length(0)
    expect(await count()).to.include({ total: 0 })
    expect(await count({ include: 'all' })).to.include({ total: 1 })
    webhookId = first
    expect(await rows()).to.have.length(1)
  })

  it('sends nothing more once it is cancelled, and keeps what it has made', async () => {
    await publish(8)
    await newWebhook()
    const job = await start()
    await eventually(async () => expect((await step(job)).hasAdvanced).to.equal(true))
    expect((await call('DELETE', `/replays/${job.id}`)).status).to.equal(204)
    expect((await step(job)).isRunning).to.equal(false)
    expect(await read(job)).to.include({ state: 'cancelled', total: 8, done: 0 })
    expect(await attemptPending()).to.equal(3)
    expect((await call('DELETE', `/replays/${job.id}`)).status).to.equal(204)
    const { json } = await call('GET', '/replays')
    expect((json as { data: Job[] }).data.map(({ id }) => id)).to.deep.equal([job.id])
    const retryJob = await suite.api.call(
      'GET',
      `/api/orgs/${member.organisationId}/webhooks/retry-deliveries/${job.id}`,
      { apiKey: member.apiKey },
    )
    expect(retryJob.status).to.equal(404)
  })

  it('keeps its place while the webhook is disabled, and goes on when it is enabled again', async () => {
    await publish(4)
    await newWebhook()
    const job = await start()
    await call('PATCH', '', { enabled: false })
    expect(await step(job)).to.deep.equal({ isRunning: true, hasAdvanced: false, isRefused: true })
    expect(await read(job)).to.include({ state: 'running', total: 4, done: 0 })
    await call('PATCH', '', { enabled: true })
    expect(await run(job)).to.include({ state: 'done', total: 4, done: 4, succeeded: 4 })
  })

  it('sends an event once when two replays and repeated steps meet', async () => {
    await publish(6)
    await newWebhook()
    const jobs = [await start(), await start()]
    for (let round = 0; round < 8; round++) {
      await Promise.all([...jobs, ...jobs].map((job) => step(job)))
      await attemptPending()
    }
    for (const job of jobs) expect(await read(job)).to.include({ state: 'done', total: 6, done: 6 })
    expect(await rows()).to.have.length(6)
    expect(receiver.posts).to.have.length(6)
  })

  it('takes half of what the endpoint takes at once also where several replays run, and each goes on', async () => {
    await publish(8)
    await newWebhook()
    const jobs = [await start()]
    await step(jobs[0]!)
    jobs.push(await start({ include: 'all' }))
    await step(jobs[1]!)
    // The first one had its half before the second began.
    expect(await attemptPending()).to.equal(3 + 1)
    for (let round = 0; round < 3; round++) {
      for (const job of jobs) await step(job)
      expect(await attemptPending()).to.equal(2)
    }
    for (const [index, job] of jobs.entries()) expect((await read(job)).done).to.be.above(index === 0 ? 3 : 0)
  })

  it('counts the first 100,000 events of a longer range, and goes on beyond them', async () => {
    const { dataSource } = suite.database
    await publish(1)
    await dataSource.query(
      `INSERT INTO event (id, organisation_id, key, body, emitted_at, trace_id)
       SELECT uuidv7(), organisation_id, 'invoice:sent', '', emitted_at, trace_id
         FROM event, generate_series(1, 100000) WHERE organisation_id = $1`,
      [member.organisationId],
    )
    await publish(2)
    await newWebhook(['customer:created'])
    expect(await count()).to.include({ total: 1, isTotalExact: false })
    const job = await start()
    expect(await run(job)).to.include({ state: 'done', total: 3, done: 3, succeeded: 3, isTotalExact: true })
  })

  it('delays no request of another organisation while many of one are counted', async () => {
    const { dataSource } = suite.database
    await newWebhook()
    const slow = { member, webhookId }
    const locker = await openTransaction(dataSource)
    // A new job waits for it, since it refers to its organisation.
    await locker.query('SELECT FROM organisation WHERE id = $1 FOR UPDATE', [member.organisationId])
    let answered = 0
    const retry = { path: '/retry-deliveries', body: { mode: 'failed' } }
    const many = Array.from({ length: 30 }, async (_, index) => {
      const replay = { path: `/${slow.webhookId}/replays`, body: { since: SINCE, dryRun: index % 3 === 0 } }
      const { path, body } = index % 3 === 1 ? retry : replay
      const { organisationId, apiKey } = slow.member
      await suite.api.call('POST', `/api/orgs/${organisationId}/webhooks${path}`, { apiKey, body })
      answered++
    })
    member = await createMember(dataSource)
    await newWebhook()
    expect(await count()).to.include({ total: 0 })
    await start()
    expect(answered).to.be.lessThan(5)
    await locker.rollbackTransaction()
    await locker.release()
    await Promise.all(many)
  })

  it('makes one job of a webhook for one Idempotency-Key; a disabled webhook gets no other', async () => {
    await publish(1)
    await newWebhook()
    const ask = () =>
      suite.api.call('POST', `/api/orgs/${member.organisationId}/webhooks/${webhookId}/replays`, {
        apiKey: member.apiKey,
        body: { since: SINCE },
        headers: { 'idempotency-key': 'once' },
      })
    const [first, second] = [await ask(), await ask()]
    expect((second.json as Job).id).to.equal((first.json as Job).id)
    const before = webhookId
    await newWebhook()
    const ofAnother = await ask()
    expect(webhookId).to.not.equal(before)
    expect(ofAnother.json)
      .to.include({ webhookId })
      .and.to.not.include({ id: (first.json as Job).id })
    await call('PATCH', '', { enabled: false })
    const repeat = await ask()
    expect([repeat.status, repeat.json]).to.deep.equal([202, ofAnother.json])
    const refused = await call('POST', '/replays', { since: SINCE })
    expect(refused.json).to.include({ status: 409, code: 'webhook_disabled' })
    await call('DELETE', '')
    expect((await ask()).status).to.equal(404)
  })
})

import { expect } from 'chai'
import { advanceRetryJob } from '../../../src/deliveries/retry/advance-retry-job.ts'
import {
  attemptAsWorkflows,
  attemptDependencies,
  attemptRequest,
  NO_SIGNALS,
} from '../../helpers/deliveries/attempts.ts'
import { writeBacklog } from '../../helpers/deliveries/backlog.ts'
import { createMember, createWebhookRow, type TestMember } from '../../helpers/database/factories.ts'
import { eventually } from '../../helpers/eventually.ts'
import { createReceiver, type Receiver } from '../../helpers/receivers/receiver.ts'
import { useApi } from '../../helpers/api/api.ts'

type Job = { id: string; state: string; total: number; done: number; succeeded: number; failed: number }

describe('POST retry-deliveries with mode stopped', () => {
  const suite = useApi()
  let member: TestMember
  let receiver: Receiver
  let webhookId: string
  let failing: Set<string>

  beforeEach(async () => {
    failing = new Set()
    receiver = await createReceiver({
      answer: (_index, { headers }) => (failing.has(String(headers['x-webhook-event-id'])) ? 503 : 200),
    })
    member = await createMember(suite.database.dataSource)
    webhookId = await newWebhook()
  })
  afterEach(() => receiver.close())

  const newWebhook = async (): Promise<string> => {
    const { organisationId } = member
    return (await createWebhookRow(suite.database.dataSource, { organisationId, url: receiver.url })).id
  }
  const call = (method: string, path: string, body?: unknown) =>
    suite.api.call(method, `/api/orgs/${member.organisationId}/webhooks${path}`, { ...member, body })
  const backlog = (count: number, options: { eventKey?: string; webhookId?: string } = {}) =>
    writeBacklog(suite.database.dataSource, {
      organisationId: member.organisationId,
      webhookId,
      state: 'waiting',
      count,
      ...options,
    })
  const change = async (id: string, body: unknown): Promise<void> => {
    const { status, text } = await call('PATCH', `/${id}`, body)
    expect(status, text).to.equal(200)
  }
  const switchOffAndOn = async (id = webhookId): Promise<void> => {
    for (const enabled of [false, true]) await change(id, { enabled })
  }
  async function start(body: { mode: string; id?: string }): Promise<Job> {
    const { status, json, text } = await call('POST', '/retry-deliveries', body)
    expect(status, text).to.equal(202)
    return json as Job
  }
  const rows = (ids: readonly string[]) =>
    suite.database.dataSource.query<{ id: string; state: string; attempts: number }[]>(
      'SELECT id, state, attempts FROM delivery WHERE id = ANY($1::uuid[]) ORDER BY id',
      [ids],
    )

  /** Runs the job to its end; the attempts that it asks for are made at once, as workflows would make them. */
  async function run(job: Job, webhookConcurrency = 3): Promise<Job> {
    const { organisationId } = member
    const open = attemptDependencies(suite.database.dataSource)
    const attempt = attemptAsWorkflows(open)
    const attempts: Promise<unknown>[] = []
    const workflows = {
      wake: (delivery: { deliveryId: string; webhookId: string }, made: number) => {
        const next = { number: made + 1, queue: 'retry' } as const
        attempts.push(attempt(attemptRequest({ organisationId, ...delivery }, next)))
        return Promise.resolve()
      },
    }
    const dependencies = { ...open, workflows, webhookConcurrency }
    for (let running = true; running;) {
      ;({ isRunning: running } = await advanceRetryJob(
        dependencies,
        { organisationId, jobId: job.id },
        NO_SIGNALS.shutDown,
      ))
      await Promise.all(attempts.splice(0))
    }
    await open.httpClient.close()
    return (await call('GET', `/retry-deliveries/${job.id}`)).json as Job
  }

  it('resumes deliveries that were stopped with their webhook, and counts successes and failures', async () => {
    const ids = await backlog(10)
    await switchOffAndOn()
    failing = new Set(ids.slice(0, 4))
    const job = await start({ mode: 'stopped', id: webhookId })
    expect(job).to.include({ state: 'running', total: 10, done: 0, succeeded: 0, failed: 0 })
    expect(await run(job)).to.include({ state: 'done', total: 10, done: 10, succeeded: 6, failed: 4 })
    // Those that failed wait for their ninth attempt, six hours and more from now.
    for (const { id, state, attempts } of await rows(ids))
      expect({ state, attempts }).to.deep.equal({
        state: failing.has(id) ? 'waiting' : 'completed',
        attempts: 8,
      })
    expect(receiver.posts).to.have.length(10)
  })

  it('covers every enabled webhook without an id, and none that is disabled', async () => {
    const other = await newWebhook()
    const off = await newWebhook()
    await backlog(2)
    await backlog(3, { webhookId: other })
    await backlog(5, { webhookId: off })
    await switchOffAndOn()
    await switchOffAndOn(other)
    await change(off, { enabled: false })
    expect(await start({ mode: 'stopped' })).to.include({ total: 5 })
    const refused = await call('POST', '/retry-deliveries', { mode: 'stopped', id: off })
    expect(refused.status).to.equal(409)
    expect(refused.json).to.include({ code: 'webhook_disabled' })
  })

  it('skips deliveries that are discarded, waiting, failed or no longer subscribed', async () => {
    const [discarded, ...unsubscribed] = await backlog(3, { eventKey: 'invoice:paid' })
    expect((await call('POST', `/${webhookId}/deliveries/${discarded!}/discard`)).status).to.equal(200)
    const stopped = await backlog(1)
    await switchOffAndOn()
    await change(webhookId, { subscribedEventKeys: ['customer:created'] })
    const waiting = await backlog(1)
    expect(await run(await start({ mode: 'stopped' }))).to.include({ total: 1, done: 1, succeeded: 1 })
    expect((await rows(stopped))[0]).to.include({ state: 'completed' })
    for (const row of await rows([discarded!, ...unsubscribed])) expect(row).to.include({ state: 'stopped' })
    expect((await rows(waiting))[0]).to.include({ state: 'waiting', attempts: 7 })
  })

  it('resumes what was stopped by a narrowed subscription once that covers its key again', async () => {
    const ids = await backlog(2, { eventKey: 'invoice:paid' })
    await change(webhookId, { subscribedEventKeys: ['customer:created'] })
    expect(await start({ mode: 'stopped' })).to.include({ total: 0, state: 'done' })
    await change(webhookId, { subscribedEventKeys: ['*'] })
    expect(await run(await start({ mode: 'stopped' }))).to.include({ total: 2, succeeded: 2 })
    expect((await rows(ids)).map(({ state }) => state)).to.deep.equal(['completed', 'completed'])
  })

  it('counts a delivery that is stopped again before its attempt as done, neither as succeeded nor as failed', async () => {
    await backlog(2)
    await switchOffAndOn()
    const job = await start({ mode: 'stopped' })
    const open = attemptDependencies(suite.database.dataSource)
    const part = { organisationId: member.organisationId, jobId: job.id }
    await eventually(async () =>
      expect((await advanceRetryJob(open, part, NO_SIGNALS.shutDown)).hasAdvanced).to.equal(true),
    )
    await change(webhookId, { enabled: false })
    expect(await run(job)).to.include({ state: 'done', total: 2, done: 2, succeeded: 0, failed: 0 })
    expect(receiver.posts).to.have.length(0)
  })

  it('keeps its place while the webhook is disabled, and goes on when it is enabled again', async () => {
    const { dataSource } = suite.database
    await writeBacklog(dataSource, { ...member, webhookId, state: 'failed', count: 3 })
    const [ofAll, job] = [await start({ mode: 'failed' }), await start({ mode: 'failed', id: webhookId })]
    await change(webhookId, { enabled: false })
    // Others may have to be retried again long before this one is enabled.
    expect(await run(ofAll)).to.include({ state: 'done', total: 3, succeeded: 0 })
    const part = { organisationId: member.organisationId, jobId: job.id }
    expect(await advanceRetryJob(attemptDependencies(dataSource), part, NO_SIGNALS.shutDown)).to.deep.equal({
      isRunning: true,
      hasAdvanced: false,
      isRefused: true,
    })
    await change(webhookId, { enabled: true })
    expect(await run(job)).to.include({ state: 'done', total: 3, done: 3, succeeded: 3 })
  })

  it('requests nothing more once its row is closed by hand', async () => {
    const { dataSource } = suite.database
    await backlog(3)
    await switchOffAndOn()
    const job = await start({ mode: 'stopped' })
    const open = { ...attemptDependencies(dataSource), webhookConcurrency: 2 }
    const part = { organisationId: member.organisationId, jobId: job.id }
    const step = () => advanceRetryJob(open, part, NO_SIGNALS.shutDown)
    await eventually(async () => expect((await step()).hasAdvanced).to.equal(true))
    await dataSource.query(`UPDATE retry_job SET state = 'done', sweep_at = NULL WHERE id = $1`, [job.id])
    expect(await step()).to.include({ isRunning: false, hasAdvanced: false })
  })

  it('counts a retry of a permanently failed delivery that fails again as failed', async () => {
    const { organisationId } = member
    const ids = await writeBacklog(suite.database.dataSource, {
      organisationId,
      webhookId,
      state: 'failed',
      count: 2,
    })
    failing = new Set(ids.slice(0, 1))
    const ended = await run(await start({ mode: 'failed' }))
    expect(ended).to.include({ total: 2, done: 2, succeeded: 1, failed: 1 })
    expect(await rows(ids.slice(0, 1))).to.deep.equal([{ id: ids[0], state: 'failed', attempts: 11 }])
  })
})

import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { writeBacklog } from '../../helpers/deliveries/backlog.ts'
import { createMember, createWebhookRow, type TestMember } from '../../helpers/database/factories.ts'
import { useApi } from '../../helpers/api/api.ts'

type Row = {
  state: string
  attempts: number
  retry_requested: boolean
  stop_reason: string | null
  sweep_at: Date | null
}

describe('acting on deliveries', () => {
  const suite = useApi()
  let member: TestMember
  let webhookId: string

  beforeEach(async () => {
    member = await createMember(suite.database.dataSource)
    webhookId = (await newWebhook()).id
    suite.api.woken.length = suite.api.startedJobs.length = suite.api.started.length = 0
  })

  const newWebhook = (enabled = true) =>
    createWebhookRow(suite.database.dataSource, {
      organisationId: member.organisationId,
      url: 'https://receiver.example.com/',
      enabled,
    })
  const call = (method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
    suite.api.call(method, `/api/orgs/${member.organisationId}/webhooks${path}`, {
      apiKey: member.apiKey,
      ...(body === undefined ? {} : { body }),
      ...(headers === undefined ? {} : { headers }),
    })
  const backlog = (state: 'failed' | 'waiting', count: number, id = webhookId) =>
    writeBacklog(suite.database.dataSource, {
      organisationId: member.organisationId,
      webhookId: id,
      state,
      count,
    })
  const row = async (id: string): Promise<Row> => {
    const [found] = await suite.database.dataSource.query<Row[]>('SELECT * FROM delivery WHERE id = $1', [id])
    return found!
  }
  const states = async (id = webhookId): Promise<Record<string, number>> => {
    const found = await suite.database.dataSource.query<{ state: string; count: number }[]>(
      'SELECT state, count(*)::int AS count FROM delivery WHERE webhook_id = $1 GROUP BY state',
      [id],
    )
    return Object.fromEntries(found.map(({ state, count }) => [state, count]))
  }

  describe('POST retry-deliveries', () => {
    it('answers 202 with the job and its place, and counts what the mode covers', async () => {
      await backlog('failed', 3)
      await backlog('waiting', 4)
      for (const [mode, total] of [
        ['failed', 3],
        ['force', 7],
      ] as const) {
        const answer = await call('POST', '/retry-deliveries', { mode })
        expect(answer.status, answer.text).to.equal(202)
        const job = answer.json as { id: string; createdAt: string }
        expect(Math.abs(Date.parse(job.createdAt) - Date.now())).to.be.below(60_000)
        expect(job).to.deep.equal({
          id: job.id,
          mode,
          webhookId: null,
          createdAt: job.createdAt,
          state: 'running',
          total,
          done: 0,
          succeeded: 0,
          failed: 0,
        })
        expect(answer.headers.get('location')).to.equal(
          `/api/orgs/${member.organisationId}/webhooks/retry-deliveries/${job.id}`,
        )
        expect((await call('GET', `/retry-deliveries/${job.id}`)).json).to.deep.equal(job)
        expect(suite.api.startedJobs).to.include(job.id)
      }
    })

    it('completes at once when nothing is covered', async () => {
      const answer = await call('POST', '/retry-deliveries', { mode: 'force' })
      expect(answer.json).to.include({ state: 'done', total: 0, done: 0 })
      expect(suite.api.startedJobs).to.deep.equal([])
    })

    it('honours Idempotency-Key: one job', async () => {
      await backlog('failed', 1)
      const headers = { 'idempotency-key': 'again-1' }
      const first = await call('POST', '/retry-deliveries', { mode: 'failed' }, headers)
      const second = await call('POST', '/retry-deliveries', { mode: 'failed' }, headers)
      expect(second.text).to.equal(first.text)
      expect(second.headers.get('location')).to.equal(first.headers.get('location'))
      expect(suite.api.startedJobs).to.have.length(1)
    })

    it('finds no webhook of an unknown id, nor of one of another form: 404', async () => {
      for (const id of [randomUUID(), 'all']) {
        const answer = await call('POST', '/retry-deliveries', { mode: 'failed', id })
        expect(answer.status, answer.text).to.equal(404)
        expect(answer.json).to.include({ code: 'not_found' })
      }
      expect(suite.api.startedJobs).to.deep.equal([])
    })
  })

  describe('POST deliveries/:deliveryId/retry', () => {
    for (const state of ['failed', 'waiting'] as const) {
      it(`records the request on a ${state} delivery and wakes its workflow`, async () => {
        const [id] = await backlog(state, 1)
        const answer = await call('POST', `/${webhookId}/deliveries/${id!}/retry`)
        expect(answer.status, answer.text).to.equal(202)
        expect(await row(id!)).to.include({
          state: 'waiting',
          retry_requested: true,
          stop_reason: null,
        })
        expect(suite.api.woken).to.deep.equal([id])
      })
    }

    it('refuses a completed delivery', async () => {
      const [id] = await backlog('failed', 1)
      await suite.database.dataSource.query(`UPDATE delivery SET state = 'completed' WHERE id = $1`, [id])
      const answer = await call('POST', `/${webhookId}/deliveries/${id!}/retry`)
      expect(answer.status).to.equal(409)
      expect(answer.json).to.include({ code: 'delivery_completed' })
      expect(suite.api.woken).to.deep.equal([])
    })

    it('refuses while the webhook is disabled', async () => {
      const [id] = await backlog('failed', 1)
      await call('PATCH', `/${webhookId}`, { enabled: false })
      const answer = await call('POST', `/${webhookId}/deliveries/${id!}/retry`)
      expect(answer.status).to.equal(409)
      expect(answer.json).to.include({ code: 'webhook_disabled' })
      const unknown = await call('POST', `/${webhookId}/deliveries/${randomUUID()}/retry`)
      expect(unknown.json).to.include({ status: 404, code: 'not_found' })
      expect(await row(id!)).to.include({ state: 'failed' })
    })
  })

  describe('stopping', () => {
    for (const state of ['failed', 'waiting'] as const) {
      it(`discards a ${state} delivery and answers with it`, async () => {
        const [id] = await backlog(state, 1)
        const answer = await call('POST', `/${webhookId}/deliveries/${id!}/discard`)
        expect(answer.status, answer.text).to.equal(200)
        expect(answer.json).to.include({ id, webhookId, state: 'stopped', stopReason: 'discarded' })
        const again = await call('POST', `/${webhookId}/deliveries/${id!}/discard`)
        expect(again.status).to.equal(409)
        expect(again.json).to.include({ code: 'not_discardable' })
      })
    }

    it('discards every failed delivery of a webhook, and says how many', async () => {
      await backlog('failed', 12)
      await backlog('waiting', 2)
      const answer = await call('POST', `/${webhookId}/discard-failed`)
      expect(answer.status).to.equal(202)
      expect(answer.json).to.deep.equal({ discarded: 12 })
      expect(await states()).to.deep.equal({ stopped: 12, waiting: 2 })
    })
  })

  describe('POST test', () => {
    it('commits one webhook:test event for this webhook only, whatever it is subscribed to', async () => {
      await newWebhook()
      const answer = await call('POST', `/${webhookId}/test`)
      expect(answer.status, answer.text).to.equal(202)
      const { deliveryId } = answer.json as { deliveryId: string }
      expect(suite.api.started).to.have.length(1)
      expect(suite.api.started[0]).to.include({ deliveryId, webhookId, eventKey: 'webhook:test' })
      const detail = await call('GET', `/${webhookId}/deliveries/${deliveryId}`)
      expect(detail.json).to.have.nested.property('payload.event', 'webhook:test')
    })

    it('refuses a disabled webhook', async () => {
      const disabled = await newWebhook(false)
      const answer = await call('POST', `/${disabled.id}/test`)
      expect(answer.status).to.equal(409)
      expect(answer.json).to.include({ code: 'webhook_disabled' })
    })
  })
})

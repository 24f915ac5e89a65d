import { expect } from 'chai'
import { advanceRetryJob } from '../../../src/deliveries/retry/advance-retry-job.ts'
import { listCovered } from '../../../src/db/queries/delivery-selection.ts'
import { createWebhookLocks } from '../../../src/webhooks/webhook-locks.ts'
import { useApi } from '../../helpers/api/api.ts'
import { createMember, createWebhookRow, type TestMember } from '../../helpers/database/factories.ts'
import { writeBacklog } from '../../helpers/deliveries/backlog.ts'
import { eventually } from '../../helpers/eventually.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'

type Job = { id: string; state: string; total: number }

const UNKNOWN_ID = '01976f3e-8c1d-7a52-9b40-6d1f2e3a4b5c'

describe('acting on selected deliveries', () => {
  const suite = useApi()
  const { database } = suite
  let member: TestMember
  let webhookId: string

  beforeEach(async () => {
    member = await createMember(database.dataSource)
    webhookId = (await newWebhook()).id
  })

  const newWebhook = (options: { enabled?: boolean; subscribedEventKeys?: string[] } = {}) =>
    createWebhookRow(database.dataSource, {
      organisationId: member.organisationId,
      url: 'https://receiver.example.com/',
      ...options,
    })
  const call = (method: string, path: string, body?: unknown) =>
    suite.api.call(method, `/api/orgs/${member.organisationId}/webhooks${path}`, { ...member, body })
  const backlog = (state: 'failed' | 'waiting', count: number, eventKey = 'customer:created') =>
    writeBacklog(database.dataSource, {
      organisationId: member.organisationId,
      webhookId,
      state,
      count,
      eventKey,
    })
  const set = (ids: string[], change: string) =>
    database.dataSource.query(`UPDATE delivery SET ${change} WHERE id = ANY($1)`, [ids])
  const idsWhere = async (condition: string): Promise<string[]> => {
    const found = await database.dataSource.query<{ id: string }[]>(
      `SELECT id FROM delivery WHERE webhook_id = $1 AND ${condition} ORDER BY id`,
      [webhookId],
    )
    return found.map(({ id }) => id)
  }

  /** Requests a retry job and takes its steps until it has requested every attempt; returns the deliveries. */
  async function retried(body: object): Promise<string[]> {
    const answer = await call('POST', '/retry-deliveries', { id: webhookId, ...body })
    expect(answer.status, answer.text).to.equal(202)
    const { id: jobId, total } = answer.json as Job
    const dependencies = {
      dataSource: database.dataSource,
      locks: createWebhookLocks(),
      workflows: { wake: () => Promise.resolve() },
      logger: silentLogger,
      endpoints: { limit: () => 1 },
      webhookConcurrency: 10_000,
    }
    const job = { organisationId: member.organisationId, jobId }
    // A step leaves out a webhook whose lock it does not get within half a second, as on a busy machine.
    return eventually(async () => {
      let hasAdvanced = true
      while (hasAdvanced)
        ({ hasAdvanced } = await advanceRetryJob(dependencies, job, new AbortController().signal))
      const requested = await idsWhere('retry_requested')
      expect(requested).to.have.lengthOf(total)
      return requested
    })
  }

  describe('with retry-deliveries', () => {
    it('retries the named deliveries that the mode covers', async () => {
      const failed = await backlog('failed', 3)
      const waiting = await backlog('waiting', 2)
      const deliveryIds = [failed[0]!, failed[2]!.toUpperCase(), waiting[0]!, UNKNOWN_ID]
      expect(await retried({ mode: 'failed', deliveryIds })).to.deep.equal([failed[0], failed[2]])
    })

    it('retries what fits the filter', async () => {
      const [early, ...late] = await backlog('failed', 3, 'invoice:paid')
      await backlog('failed', 2)
      await backlog('waiting', 2, 'invoice:paid')
      await set([early!], `created_at = now() - interval '1 day', id = uuidv7(interval '-1 day')`)
      const filter = { eventKey: 'invoice:paid', since: new Date(Date.now() - 60_000).toISOString() }
      expect(await retried({ mode: 'failed', filter })).to.deep.equal(late)
    })

    it('retries what was answered with a status code', async () => {
      const failed = await backlog('failed', 3)
      await database.dataSource.query(
        `INSERT INTO attempt (delivery_id, number, trigger, url, started_at, duration_ms, outcome, status_code)
         SELECT id, attempts, 'schedule', '', now(), 1, 'failed', CASE WHEN id = $1 THEN 410 ELSE 500 END FROM delivery
          WHERE webhook_id = $2`,
        [failed[1], webhookId],
      )
      expect(await retried({ mode: 'force', filter: { statusCode: 410 } })).to.deep.equal([failed[1]])
    })

    it('retries undelivered ones whatever the reason, but no test events', async () => {
      const failed = await backlog('failed', 1)
      const waiting = await backlog('waiting', 1)
      const [discarded, disabled, test, completed] = await backlog('failed', 4)
      await set([discarded!], `state = 'stopped', stop_reason = 'discarded'`)
      await set([disabled!], `state = 'stopped', stop_reason = 'webhook_disabled'`)
      await set([test!], `state = 'stopped', stop_reason = 'test_failed', is_test = true`)
      await set([completed!], `state = 'completed'`)
      const deliveryIds = await idsWhere('true')
      const wanted = [...failed, ...waiting, discarded!, disabled!].sort()
      expect(await retried({ mode: 'undelivered', deliveryIds })).to.deep.equal(wanted)
    })

    it('passes over event keys that the webhook is not subscribed to', async () => {
      webhookId = (await newWebhook({ subscribedEventKeys: ['invoice:paid'] })).id
      await backlog('failed', 1)
      const paid = await backlog('failed', 1, 'invoice:paid')
      expect(await retried({ mode: 'undelivered', filter: { state: 'failed' } })).to.deep.equal(paid)
    })

    it('reads 5,000 deliveries in a step at most, also without a filter', async () => {
      const { organisationId } = member
      const failed = await backlog('failed', 6_000)
      await backlog('failed', 1, 'invoice:paid')
      const { json } = await call('POST', '/retry-deliveries', { mode: 'failed', id: webhookId })
      await call('PATCH', `/${webhookId}`, { subscribedEventKeys: ['invoice:paid'] })
      const page = { organisationId, webhookId, jobId: (json as Job).id, mode: 'failed', limit: 50 } as const
      expect(await listCovered(database.dataSource, { ...page, cursor: null })).to.deep.equal({
        ids: [],
        last: failed.sort()[4_999],
      })
    })

    it('finds the few that fit among many, step by step', async () => {
      await backlog('failed', 6_000)
      const last = await backlog('failed', 1, 'invoice:paid')
      await backlog('waiting', 6_000)
      expect(await retried({ mode: 'force', filter: { eventKey: 'invoice:paid' } })).to.deep.equal(last)
    })
  })

  describe('with discard', () => {
    it('stops the named deliveries that wait or failed, and records how many', async () => {
      const failed = await backlog('failed', 2)
      const waiting = await backlog('waiting', 2)
      const [completed] = await backlog('failed', 1)
      await set([completed!], `state = 'completed'`)
      const deliveryIds = [failed[0]!, waiting[0]!, completed!, UNKNOWN_ID]
      const answer = await call('POST', `/${webhookId}/discard`, { deliveryIds })
      expect(answer.status, answer.text).to.equal(202)
      expect(answer.json).to.deep.equal({ discarded: 2 })
      expect(await idsWhere(`state = 'stopped' AND stop_reason = 'discarded'`)).to.deep.equal(
        [failed[0]!, waiting[0]!].sort(),
      )
      const [entry] = await database.dataSource.query<{ details: object }[]>(
        `SELECT details FROM audit_entry WHERE action = 'deliveries.discarded' AND webhook_id = $1`,
        [webhookId],
      )
      expect(entry!.details).to.deep.equal({ count: 2, deliveryIds })
    })

    it('stops what fits the filter, and nothing of another webhook', async () => {
      const paid = await backlog('waiting', 2, 'invoice:paid')
      await backlog('failed', 2)
      const other = (await newWebhook()).id
      const filter = { eventKey: 'invoice:paid' }
      expect((await call('POST', `/${other}/discard`, { filter })).json).to.deep.equal({ discarded: 0 })
      expect((await call('POST', `/${webhookId}/discard`, { filter })).json).to.deep.equal({ discarded: 2 })
      expect(await idsWhere(`state = 'stopped'`)).to.deep.equal(paid)
    })
  })

  const REFUSED: [title: string, path: () => string, body: () => object, pointers: string[]][] = [
    [
      'a selection without a webhook',
      retry,
      () => ({ mode: 'failed', filter: { state: 'failed' } }),
      ['/id'],
    ],
    [
      'mode undelivered without a selection',
      retry,
      () => ({ mode: 'undelivered', id: webhookId }),
      ['/deliveryIds'],
    ],
    [
      'both selections',
      discard,
      () => ({ deliveryIds: [UNKNOWN_ID], filter: { state: 'failed' } }),
      ['/filter'],
    ],
    ['no selection', discard, () => ({}), ['/deliveryIds']],
    ['an empty filter', discard, () => ({ filter: {} }), ['/filter']],
  ]
  function retry(): string {
    return '/retry-deliveries'
  }
  function discard(): string {
    return `/${webhookId}/discard`
  }
  for (const [title, path, body, pointers] of REFUSED) {
    it(`refuses ${title}, naming every bad field`, async () => {
      const answer = await call('POST', path(), body())
      expect(answer.status, answer.text).to.equal(422)
      const { errors } = answer.json as { errors: { pointer: string }[] }
      expect(errors.map(({ pointer }) => pointer)).to.have.members(pointers)
    })
  }

  it('accepts a hundred ids in one body', async () => {
    const deliveryIds = Array.from({ length: 100 }, (_, n) => UNKNOWN_ID.slice(0, -3) + String(n + 100))
    const answer = await call('POST', `/${webhookId}/discard`, { deliveryIds })
    expect(answer.json).to.deep.equal({ discarded: 0 })
  })
})

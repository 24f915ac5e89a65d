import { expect } from 'chai'
import type { Static } from 'typebox'
import type { RetryJobSchema } from '../../../src/http/schemas/retry.ts'
import { useApi } from '../../helpers/api/api.ts'
import { createMember, createWebhookRow, type TestMember } from '../../helpers/database/factories.ts'
import { planOf } from '../../helpers/database/plan.ts'
import { listRetryJobs } from '../../../src/db/queries/retry-jobs.ts'

type JobList = { data: Static<typeof RetryJobSchema>[]; nextCursor: string | null }

describe('GET /webhooks/retry-deliveries', () => {
  const suite = useApi()
  let member: TestMember
  let webhookId: string

  beforeEach(async () => {
    const { dataSource } = suite.database
    member = await createMember(dataSource)
    const url = 'https://receiver.example.com/'
    webhookId = (await createWebhookRow(dataSource, { organisationId: member.organisationId, url })).id
  })

  const call = (method: string, path: string, body?: object, { organisationId, apiKey } = member) =>
    suite.api.call(method, `/api/orgs/${organisationId}/webhooks/retry-deliveries${path}`, { apiKey, body })
  const requested = async (body: object) => (await call('POST', '', body)).json as JobList['data'][number]
  async function list(query = '', reader = member): Promise<JobList> {
    const answer = await call('GET', query, undefined, reader)
    expect(answer.status, answer.text).to.equal(200)
    return answer.json as JobList
  }

  it('lists every job of the organisation with its outcome, newest first', async () => {
    const first = await requested({ mode: 'failed' })
    const second = await requested({ mode: 'force', id: webhookId })
    await suite.database.dataSource.query(
      `INSERT INTO retry_job_webhook (job_id, webhook_id, total, done, succeeded, failed) VALUES ($1, $2, 9, 7, 4, 2)`,
      [second.id, webhookId],
    )
    expect(await list()).to.deep.equal({
      data: [{ ...second, total: 9, done: 7, succeeded: 4, failed: 2 }, first],
      nextCursor: null,
    })
    expect((await list('', await createMember(suite.database.dataSource))).data).to.deep.equal([])
  })

  it('gives pages, none of which a job that is made meanwhile moves', async () => {
    const made: string[] = []
    for (let index = 0; index < 5; index++) made.unshift((await requested({ mode: 'failed' })).id)
    const page = await list('?limit=2')
    await requested({ mode: 'force' })
    const next = await list(`?limit=3&cursor=${page.nextCursor ?? ''}`)
    expect([...page.data, ...next.data].map(({ id }) => id)).to.deep.equal(made)
    expect(next.nextCursor).to.equal(null)
  })

  it('reads a page along an index', async () => {
    const { dataSource } = suite.database
    await dataSource.query(
      `INSERT INTO retry_job (id, organisation_id, mode, requested_by, state)
       SELECT uuidv7(n * interval '-1 minute'), $1, 'failed', 'mem', 'done' FROM generate_series(1, 5000) n`,
      [member.organisationId],
    )
    await dataSource.query('ANALYZE retry_job')
    const { organisationId } = await createMember(dataSource)
    const { scanned, indexes } = await planOf(dataSource, (db) =>
      listRetryJobs(db, organisationId, { after: null, limit: 50 }),
    )
    expect(scanned).to.not.include('retry_job')
    expect(indexes).to.include('retry_job_list_idx')
  })
})

import { expect } from 'chai'
import pg from 'pg'
import type { DataSource } from 'typeorm'
import { WebhookLockedError } from '../../../src/db/connection/connection-errors.ts'
import { createDataSource } from '../../../src/db/connection/data-source.ts'
import { insertRetryJob } from '../../../src/db/queries/retry-jobs.ts'
import { advanceRetryJob } from '../../../src/deliveries/retry/advance-retry-job.ts'
import { newId } from '../../../src/ids.ts'
import { evaluateNotifications } from '../../../src/incidents/evaluate-notifications.ts'
import { createTestApi } from '../../helpers/api/api.ts'
import { createMember, createWebhookRow } from '../../helpers/database/factories.ts'
import { writeBacklog } from '../../helpers/deliveries/backlog.ts'
import { attemptDependencies } from '../../helpers/deliveries/attempts.ts'
import {
  createConcurrentWebhook,
  type ConcurrentWebhook,
} from '../../helpers/incidents/concurrent-webhook.ts'
import { eventually } from '../../helpers/eventually.ts'
import { percentile } from '../../helpers/percentile.ts'
import { useDatabase } from '../../helpers/database/database.ts'

const POOL_SIZE = 20
const FAILURES = 5

/** How long outcomes of another webhook are watched: longer than a lock may be waited for. */
const WATCHED_MS = 12_000

const never = new AbortController().signal

describe('webhooks that are locked by a lost host', () => {
  const database = useDatabase()
  let pool: DataSource
  let dependencies: ReturnType<typeof attemptDependencies>
  let holder: pg.Client

  beforeEach(async () => {
    pool = createDataSource({ url: database.url, poolSize: POOL_SIZE, connectTimeoutMs: 60_000 })
    await pool.initialize()
    dependencies = attemptDependencies(pool)
    holder = new pg.Client({ connectionString: database.url })
    await holder.connect()
  })
  afterEach(async () => {
    await holder.end()
    await dependencies.httpClient.close()
    await pool.destroy()
  })

  const create = (): Promise<ConcurrentWebhook> => createConcurrentWebhook(pool, dependencies)
  const createMany = async (count: number): Promise<ConcurrentWebhook[]> => {
    const webhooks: ConcurrentWebhook[] = []
    for (let index = 0; index < count; index++) webhooks.push(await create())
    return webhooks
  }
  const lockIds = async (ids: string[]): Promise<void> => {
    await holder.query('BEGIN')
    await holder.query(
      'SELECT pg_advisory_xact_lock(hashtextextended(id, 0)) FROM unnest($1::text[]) AS id',
      [ids],
    )
  }
  const lock = (webhooks: readonly ConcurrentWebhook[]): Promise<void> =>
    lockIds(webhooks.map(({ webhookId }) => webhookId))
  const fail = async (webhook: ConcurrentWebhook, count: number): Promise<void> => {
    const ids = await webhook.publish(count)
    await webhook.attempt(ids.map((deliveryId) => ({ deliveryId, number: 1, succeeds: false })))
  }

  it('by all their rows, as by the end of a long backlog, delay no attempt at another', async () => {
    const [other, locked] = [await create(), await create()]
    const ids = await locked.publish(2 * POOL_SIZE)
    await holder.query('BEGIN')
    await holder.query('UPDATE delivery SET sweep_at = sweep_at WHERE webhook_id = $1', [locked.webhookId])
    const waiting = locked.attempt(ids.map((deliveryId) => ({ deliveryId, number: 1, succeeds: true })))
    let recorded = 0
    for (const until = performance.now() + WATCHED_MS / 2; performance.now() < until; recorded++)
      await fail(other, FAILURES)
    // One that waited for a connection as well would take most of this time.
    expect(recorded).to.be.above(3)
    await holder.query('COMMIT')
    await waiting
    expect(await locked.states()).to.deep.equal({ completed: ids.length })
  })

  describe('forty at a time', () => {
    let locked: ConcurrentWebhook[]
    let other: ConcurrentWebhook

    beforeEach(async () => {
      ;[other, locked] = [await create(), await createMany(40)]
    })

    it('delay no outcome of another, and theirs are recorded after the release', async () => {
      await lock(locked)
      const waiting = Promise.all(locked.map((webhook) => fail(webhook, FAILURES)))
      let recorded = 0
      for (const until = performance.now() + WATCHED_MS; performance.now() < until; recorded++)
        await fail(other, FAILURES)
      // One that waited for a lock as well would take a third of this time.
      expect(recorded).to.be.above(3)
      for (const webhook of locked) expect(await webhook.states()).not.to.have.property('waiting')

      await holder.query('COMMIT')
      await eventually(async () => {
        for (const webhook of locked) expect(await webhook.states()).to.deep.equal({ waiting: FAILURES })
      })
      await waiting
    })

    it('delay no command for another, and theirs are refused in time', async () => {
      const api = await createTestApi(pool, { locks: dependencies.locks })
      const patch = async ({ member, webhookId }: ConcurrentWebhook) => {
        const { organisationId, apiKey } = member
        const beganAtMs = performance.now()
        const path = `/api/orgs/${organisationId}/webhooks/${webhookId}`
        const { status, headers } = await api.call('PATCH', path, { apiKey, body: { description: 'Again' } })
        return { status, retryAfter: headers.get('retry-after'), ms: performance.now() - beganAtMs }
      }
      await lock(locked)
      const refusing = Promise.all(locked.flatMap((webhook) => [patch(webhook), patch(webhook)]))
      const ownMs: number[] = []
      for (let time = 0; time < 20; time++) {
        const { status, ms } = await patch(other)
        expect(status).to.equal(200)
        ownMs.push(ms)
      }
      for (const { status, retryAfter, ms } of await refusing) {
        expect(status).to.equal(503)
        expect(retryAfter).to.match(/^[1-9]\d*$/)
        expect(percentile(ownMs, 0.5)).to.be.below(ms)
      }
      await holder.query('COMMIT')
      expect((await patch(locked[0]!)).status).to.equal(200)
      await api.close()
    })

    it('delay no evaluation of the incident of another, nor anything else', async () => {
      const evaluate = async (webhook: ConcurrentWebhook) => {
        const [incident] = await webhook.incidents()
        const { organisationId } = webhook.member
        return evaluateNotifications(dependencies, {
          organisationId,
          incidentId: incident!.id,
          dueFor: null,
          notifyAfterMs: 300_000,
        })
      }
      for (const webhook of [other, ...locked]) await webhook.publishFailing(1)
      await lock(locked)
      let areRefused = false
      const refusing = Promise.allSettled(locked.map(evaluate)).finally(() => (areRefused = true))
      expect(await evaluate(other)).to.include({ open: true, waiting: 1 })
      expect(areRefused).to.equal(false)
      for (const refused of await refusing)
        expect(refused).to.have.property('reason').that.is.instanceOf(WebhookLockedError)
    })
  })

  it('are left out by the steps of a retry job, which goes on with the others', async () => {
    const { organisationId } = await createMember(pool)
    const ids: string[] = []
    for (let index = 0; index < 6; index++) {
      const url = 'https://receiver.example.com/'
      const { id: webhookId } = await createWebhookRow(pool, { organisationId, url })
      await writeBacklog(pool, { organisationId, webhookId, state: 'failed', count: 1 })
      ids.push(webhookId)
    }
    const job = { id: newId(), organisationId, webhookId: null, mode: 'force' as const, requestedBy: 'mem_1' }
    await pool.transaction((manager) => insertRetryJob(manager, job))
    const requested = async (): Promise<string[]> => {
      const rows = await pool.query<{ id: string }[]>(
        'SELECT webhook_id AS id FROM delivery WHERE organisation_id = $1 AND retry_requested ORDER BY 1',
        [organisationId],
      )
      return rows.map(({ id }) => id)
    }
    const step = () => advanceRetryJob(dependencies, { organisationId, jobId: job.id }, never)
    await lockIds(ids.slice(0, 5))
    // A step leaves out any webhook whose lock it does not get within half a second, as on a busy machine.
    await eventually(async () => {
      expect(await step()).to.include({ isRunning: true })
      expect(await requested()).to.deep.equal(ids.slice(5))
    })
    await holder.query('COMMIT')
    await eventually(async () => {
      await step()
      expect(await requested()).to.deep.equal([...ids].sort())
    })
  })
})

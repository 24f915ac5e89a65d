import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import type { DataSource } from 'typeorm'
import { createDataSource } from '../../../src/db/connection/data-source.ts'
import { purge } from '../../../src/retention/purge.ts'
import { findIncidentsToSignal } from '../../../src/db/queries/incidents.ts'
import { lockWebhook } from '../../../src/db/queries/webhooks.ts'
import { createWebhookLocks, type WebhookLocks } from '../../../src/webhooks/webhook-locks.ts'
import { closeAfterDiscard } from '../../../src/deliveries/retry/discard-deliveries.ts'
import { createTestApi, type TestApi } from '../../helpers/api/api.ts'
import {
  createConcurrentWebhook,
  type ConcurrentWebhook,
  type Planned,
} from '../../helpers/incidents/concurrent-webhook.ts'
import { eventually } from '../../helpers/eventually.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'
import { openTransaction, untilWaitingForLock, useDatabase } from '../../helpers/database/database.ts'

const POOL_SIZE = 20

/** What is asserted here is the order of transactions: none ends because the machine is slow. */
const UNLIMITED_MS = 120_000

/** Processes that record failures of one webhook: each has one transaction at a time that waits for its lock. */
const PROCESSES = 4

/** A transaction that waits for the lock gets it in order, long before the failures end. */
const KEEP_COMING_MS = 30_000

/** How long the lock is held at most, and where a query waits for it. */
const MAX_HELD_MS = 20_000
const HELD_MS = 500

describe('incidents under concurrency', () => {
  const database = useDatabase()
  /** The pool of the process that does the work; `database` observes it. */
  let pool: DataSource
  let api: TestApi
  let webhook: ConcurrentWebhook

  before(async () => {
    pool = createDataSource({
      url: database.url,
      poolSize: POOL_SIZE,
      connectTimeoutMs: UNLIMITED_MS,
      statementTimeoutMs: UNLIMITED_MS,
      lockTimeoutMs: UNLIMITED_MS,
    })
    await pool.initialize()
    api = await createTestApi(pool, {
      locks: unlimitedLocks(),
      incidentWorkflows: { signal: (incident) => Promise.resolve(void webhook.signalled.push(incident)) },
    })
  })
  const endWork = async (): Promise<void> => {
    if (!pool.isInitialized) return
    await api.close()
    await pool.destroy()
  }
  after(endWork)
  beforeEach(async () => {
    webhook = await createConcurrentWebhook(pool)
  })

  /** The locks of one process, for which a command waits however long that takes. */
  function unlimitedLocks(): WebhookLocks {
    const locks = createWebhookLocks(POOL_SIZE)
    return {
      transact: (dataSource, webhookId, work) => locks.transact(dataSource, webhookId, work, UNLIMITED_MS),
    }
  }

  const plan = (ids: readonly string[], number: number, succeeds: boolean): Planned[] =>
    ids.map((deliveryId) => ({ deliveryId, number, succeeds }))

  const request = async (method: string, path: string, body?: unknown): Promise<number> => {
    const { organisationId, apiKey } = webhook.member
    const url = `/api/orgs/${organisationId}/webhooks/${webhook.webhookId}${path}`
    return (await api.call(method, url, { apiKey, body })).status
  }

  /** Open exactly while something is unresolved, and never two. */
  async function expectAgreement(): Promise<void> {
    const { waiting = 0, failed = 0, in_progress: underWay = 0 } = await webhook.states()
    const open = (await webhook.incidents()).filter((incident) => incident.open)
    expect(open).to.have.length(waiting + failed + underWay === 0 ? 0 : 1)
  }

  it('a hundred first failures open one, and signal it once', async () => {
    const outcomes = await webhook.attempt(plan(await webhook.publish(100), 1, false))
    expect(outcomes.filter(({ state }) => state === 'waiting')).to.have.length(100)
    expect(await webhook.states()).to.deep.equal({ waiting: 100 })
    const [incident, ...others] = await webhook.incidents()
    expect(others).to.deep.equal([])
    expect(incident).to.include({ open: true, exhausted: false })
    expect(webhook.signalled.map(({ incidentId }) => incidentId)).to.deep.equal([incident!.id])
  })

  it('a hundred last successes close it once, and signal it once', async () => {
    const ids = await webhook.publishFailing(100)
    await webhook.attempt(plan(ids, 2, true))
    expect(await webhook.states()).to.deep.equal({ completed: 100 })
    const incidents = await webhook.incidents()
    expect(incidents.map(({ open }) => open)).to.deep.equal([false])
    expect(webhook.signalled.map(({ incidentId }) => incidentId)).to.deep.equal([incidents[0]!.id])
  })

  it('twenty deliveries that fail permanently at once exhaust it once, and signal it once', async () => {
    const ids = await webhook.publishFailing(20, 9)
    await webhook.attempt(plan(ids, 10, false))
    expect(await webhook.states()).to.deep.equal({ failed: 20 })
    const incidents = await webhook.incidents()
    expect(incidents.map(({ exhausted }) => exhausted)).to.deep.equal([true])
    expect(webhook.signalled.map(({ incidentId }) => incidentId)).to.deep.equal([incidents[0]!.id])
  })

  it('discards and successful retries at the same time close it, whichever is last', async () => {
    const ids = await webhook.publishFailing(40, 9)
    await webhook.attempt(plan(ids, 10, false))
    const retried = ids.slice(0, 20)
    await Promise.all(retried.map((id) => request('POST', `/deliveries/${id}/retry`)))
    webhook.signalled.length = 0
    const [, ...statuses] = await Promise.all([
      webhook.attempt(plan(retried, 11, true)),
      request('POST', '/discard-failed'),
      request('POST', '/discard-failed'),
      ...ids.slice(0, 10).map((id) => request('POST', `/deliveries/${id}/discard`)),
    ])
    for (const status of statuses) expect(status).to.be.oneOf([200, 202, 409])
    const { completed = 0, stopped = 0, ...others } = await webhook.states()
    expect(others).to.deep.equal({})
    expect(completed + stopped).to.equal(40)
    expect((await webhook.incidents()).map(({ open }) => open)).to.deep.equal([false])
    expect(webhook.signalled).to.have.length(1)
  })

  it('deliveries that are purged while successes are recorded do not end it, and the next success does', async () => {
    const old = await webhook.publishFailing(40, 9)
    await webhook.attempt(plan(old, 10, false))
    await pool.query(`UPDATE delivery SET completed_at = now() - interval '91 days' WHERE webhook_id = $1`, [
      webhook.webhookId,
    ])
    const ids = await webhook.publishFailing(40)
    const purgeNow = () =>
      purge(
        { dataSource: pool, logger: silentLogger },
        { completedDays: 30, failedDays: 90, auditDays: 365 },
        new AbortController().signal,
      )
    await Promise.all([webhook.attempt(plan(ids, 2, true)), purgeNow(), purgeNow()])
    await purgeNow()
    expect(await webhook.states()).to.deep.equal({ completed: 40 })
    await webhook.attempt(plan(await webhook.publish(20), 1, true))
    expect((await webhook.incidents()).map(({ open }) => open)).to.deep.equal([false])
    expect(webhook.signalled).to.have.length(1)
  })

  it('nothing is left open, or opened, by failures that are recorded while the webhook is deleted', async () => {
    const [failing, fresh] = [await webhook.publishFailing(30), await webhook.publish(30)]
    const [, status] = await Promise.all([
      webhook.attempt([...plan(failing, 2, false), ...plan(fresh, 1, false)]),
      request('DELETE', ''),
    ])
    expect(status).to.equal(204)
    expect(await webhook.states()).to.deep.equal({ stopped: 60 })
    expect((await webhook.incidents()).map(({ open }) => open)).to.deep.equal([false])
    expect(webhook.signalled).to.have.length(1)
  })

  describe('while the lock of a webhook is held', () => {
    /** Returns whether a query about something else is answered while the work waits for the lock. */
    async function isAnsweredWhile(work: () => Promise<unknown>, heldMs: number): Promise<boolean> {
      const holder = await openTransaction(database.dataSource)
      await lockWebhook(holder.manager, webhook.webhookId)
      const working = work()
      await untilWaitingForLock(database.dataSource)
      const query = pool.query('SELECT 1').then(() => true)
      const isAnswered = await Promise.race([query, delay(heldMs, false, { ref: false })])
      await holder.commitTransaction()
      await holder.release()
      await Promise.all([query, working])
      return isAnswered
    }

    for (const [what, succeeds, state] of [
      ['successes', true, 'completed'],
      ['failures', false, 'waiting'],
    ] as const)
      it(`two hundred ${what} of it do not delay a query about something else`, async () => {
        const ids = await webhook.publishFailing(200)
        expect(await isAnsweredWhile(() => webhook.attempt(plan(ids, 2, succeeds)), MAX_HELD_MS)).to.equal(
          true,
        )
        await expectAgreement()
        expect(await webhook.states()).to.deep.equal({ [state]: 200 })
      })

    it('transactions without a limit would delay it', async () => {
      const lock = () => pool.transaction((manager) => lockWebhook(manager, webhook.webhookId))
      expect(await isAnsweredWhile(() => Promise.all(Array.from({ length: 200 }, lock)), HELD_MS)).to.equal(
        false,
      )
    })
  })

  describe('while failures keep coming', () => {
    /** An API with a pool of its own, as in a process of its own. */
    let elsewhere: TestApi

    before(async () => {
      elsewhere = await createTestApi(database.dataSource, { locks: unlimitedLocks() })
    })
    after(() => elsewhere.close())

    /** Returns whether `act` ends before the failures, which end after KEEP_COMING_MS. */
    async function endsMeanwhile(act: () => Promise<unknown>, eachS = 0.005): Promise<boolean> {
      await webhook.publishFailing(1)
      const { webhookId } = webhook
      await pool.query('UPDATE incident SET sweep_at = now() WHERE webhook_id = $1', [webhookId])
      let isOver = false
      let recorded = 0
      const timer = setTimeout(() => (isOver = true), KEEP_COMING_MS)
      // Holds the lock of a failure for as long as a disk takes to write one.
      const record = (): Promise<void> =>
        pool.transaction(async (manager) => {
          await lockWebhook(manager, webhookId)
          await manager.query('SELECT pg_sleep($1)', [eachS])
          recorded++
        })
      const recordAll = async (): Promise<void> => {
        while (!isOver) await record()
      }
      const recording = Array.from({ length: PROCESSES }, recordAll)
      await eventually(() => expect(recorded).to.be.above(POOL_SIZE))
      await act()
      const isSoon = !isOver
      clearTimeout(timer)
      isOver = true
      await Promise.all(recording)
      return isSoon
    }

    it('a member can switch the webhook off', async () => {
      const { organisationId, apiKey } = webhook.member
      const path = `/api/orgs/${organisationId}/webhooks/${webhook.webhookId}`
      const isSoon = await endsMeanwhile(async () => {
        const answer = await elsewhere.call('PATCH', path, { apiKey, body: { enabled: false } })
        expect(answer.status).to.equal(200)
      })
      expect(isSoon).to.equal(true)
    })

    // It neither waits for the lock nor passes over what is locked.
    it('the sweeper finds an incident whose workflow was not signalled', async () => {
      const sweep = () =>
        eventually(async () => {
          const owed = await findIncidentsToSignal(database.dataSource, 200)
          expect(owed.map(({ webhookId }) => webhookId)).to.include(webhook.webhookId)
        })
      expect(await endsMeanwhile(sweep, 0.05)).to.equal(true)
    })

    it('a success can be recorded', async () => {
      const isSoon = await endsMeanwhile(() =>
        database.dataSource.transaction(async (manager) => {
          await lockWebhook(manager, webhook.webhookId)
          return closeAfterDiscard(
            manager,
            { organisationId: webhook.member.organisationId, webhookId: webhook.webhookId },
            () => Promise.resolve(1),
          )
        }),
      )
      expect(isSoon).to.equal(true)
    })
  })

  describe('after all of this', () => {
    // A deadlock is tried again, so no other test fails by it.
    it('PostgreSQL has seen no deadlock', async () => {
      // What a connection has counted is known when it has ended.
      await endWork()
      const [counted] = await database.dataSource.query<{ deadlocks: number; commits: number }[]>(
        `SELECT deadlocks::int, xact_commit::int AS commits FROM pg_stat_database WHERE datname = current_database()`,
      )
      expect(counted!.commits).to.be.above(1_000)
      expect(counted!.deadlocks).to.equal(0)
    })
  })
})

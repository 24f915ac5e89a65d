import { expect } from 'chai'
import type { EntityManager } from 'typeorm'
import { WebhookLockedError } from '../../../src/db/connection/connection-errors.ts'
import { lockWebhook } from '../../../src/db/queries/webhooks.ts'
import { newId } from '../../../src/ids.ts'
import { createWebhookLocks } from '../../../src/webhooks/webhook-locks.ts'
import { openTransaction, untilWaitingForLock, useDatabase } from '../../helpers/database/database.ts'
import { eventually } from '../../helpers/eventually.ts'

const SOON_MS = 5_000

describe('transactions under the lock of a webhook', () => {
  const database = useDatabase()

  it('run one after the other, in order, also after one that fails', async () => {
    const [locks, webhookId] = [createWebhookLocks(), newId()]
    const log: string[] = []
    const run = (name: string) =>
      locks.transact(
        database.dataSource,
        { webhookId },
        async (manager) => {
          log.push(`${name} begins`)
          await manager.query('SELECT 1')
          log.push(`${name} ends`)
          if (name === 'b') throw new Error('no')
          return name
        },
        SOON_MS,
      )
    const ended = await Promise.allSettled(['a', 'b', 'c'].map(run))
    expect(ended.map(({ status }) => status)).to.deep.equal(['fulfilled', 'rejected', 'fulfilled'])
    expect(log).to.deep.equal(['a', 'b', 'c'].flatMap((name) => [`${name} begins`, `${name} ends`]))
  })

  it('are refused in time while the lock is held elsewhere, and never begin then', async () => {
    const [locks, webhookId] = [createWebhookLocks(), newId()]
    const holder = await openTransaction(database.dataSource)
    await lockWebhook(holder.manager, webhookId)
    const begun: string[] = []
    const run = (name: string, timeoutMs: number) =>
      locks.transact(database.dataSource, { webhookId }, () => Promise.resolve(begun.push(name)), timeoutMs)
    const refused = await Promise.allSettled([run('first', 300), run('second', 300)])
    for (const one of refused) expect(one).to.have.property('reason').that.is.instanceOf(WebhookLockedError)
    const third = run('third', SOON_MS)
    await holder.commitTransaction()
    await holder.release()
    await third
    expect(begun).to.deep.equal(['third'])
  })

  it('get the lock from others that queue for it without a pause', async () => {
    const [locks, webhookId] = [createWebhookLocks(), newId()]
    let [isOver, held] = [false, 0]
    const keepQueueing = async (): Promise<void> => {
      while (!isOver)
        await database.dataSource.transaction(async (manager) => {
          await lockWebhook(manager, webhookId)
          await manager.query('SELECT pg_sleep(0.005)')
          held++
        })
    }
    const others = Array.from({ length: 4 }, keepQueueing)
    await eventually(() => expect(held).to.be.above(8))
    await locks
      .transact(database.dataSource, { webhookId }, (manager) => manager.query('SELECT 1'), 60_000)
      .finally(() => (isOver = true))
    await Promise.all(others)
  })

  it('keep the time limit of locks for what follows, however they got theirs', async () => {
    const [locks, webhookId] = [createWebhookLocks(), newId()]
    const limit = () =>
      locks.transact(
        database.dataSource,
        { webhookId },
        (manager) => manager.query<{ lock_timeout: string }[]>('SHOW lock_timeout'),
        SOON_MS,
      )
    const atOnce = await limit()
    const holder = await openTransaction(database.dataSource)
    await lockWebhook(holder.manager, webhookId)
    const queued = limit()
    await untilWaitingForLock(database.dataSource)
    await holder.commitTransaction()
    await holder.release()
    expect(await queued).to.deep.equal(atOnce)
  })

  describe('of one organisation that take long', () => {
    let [begun, ended, end] = [0, [] as string[], () => {}]
    let run: (
      name: string,
      of: { webhookId: string; organisationId?: string },
      work?: (manager: EntityManager) => Promise<unknown>,
    ) => Promise<void>
    let long: Promise<void>[]

    beforeEach(async () => {
      const locks = createWebhookLocks(4)
      const held = new Promise<void>((resolve) => (end = resolve))
      begun = 0
      ended = []
      run = async (name, of, work = (manager) => manager.query('SELECT 1')) => {
        await locks.transact(database.dataSource, of, work, name === 'late' ? 100 : 60_000)
        ended.push(name)
      }
      const begin = () =>
        run('long', { webhookId: newId(), organisationId: 'org_a' }, async (manager) => {
          await manager.query('SET LOCAL idle_in_transaction_session_timeout = 0')
          begun++
          await held
        })
      long = Array.from({ length: 3 }, begin)
      await eventually(() => expect(begun).to.equal(1))
    })
    afterEach(() => end())

    it('leave places to those of others', async () => {
      await run('short', { webhookId: newId(), organisationId: 'org_b' })
      expect(begun).to.equal(1)
      end()
      await Promise.all(long)
      expect(ended).to.deep.equal(['short', 'long', 'long', 'long'])
    })

    it('hold up their webhook no longer than until they time out', async () => {
      const webhookId = newId()
      const late = run('late', { webhookId, organisationId: 'org_a' }).catch(() => ended.push('late'))
      await run('short', { webhookId })
      end()
      await Promise.all([...long, late])
      expect(ended).to.deep.equal(['late', 'short', 'long', 'long', 'long'])
    })
  })
})

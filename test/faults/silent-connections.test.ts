import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import type { DataSource } from 'typeorm'
import { closeDataSource, createDataSource, poolStatus } from '../../src/db/connection/data-source.ts'
import { isDatabaseUnavailable } from '../../src/db/connection/connection-errors.ts'
import { allowLongerStatements } from '../../src/db/connection/database-client.ts'
import { blockProcess } from '../helpers/block-process.ts'
import { useDatabase } from '../helpers/database/database.ts'
import { createDatabaseProxy } from './rig/tcp-proxy.ts'

const STATEMENT_TIMEOUT_MS = 1_000
/**
 * What a process waits for more than the server, and more for a machine with other work to do: the operating system
 * would notice after 20 seconds.
 */
const LIMIT_MS = STATEMENT_TIMEOUT_MS + 2_000 + 7_000

describe('a pool behind connections that fall silent', () => {
  const database = useDatabase()
  let proxy: Awaited<ReturnType<typeof createDatabaseProxy>>
  let pool: DataSource

  beforeEach(async () => {
    proxy = await createDatabaseProxy(database.url)
    pool = await createDataSource({
      url: proxy.url,
      poolSize: 5,
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    }).initialize()
  })
  afterEach(async () => {
    if (pool.isInitialized) await closeDataSource(pool)
    await proxy.close()
  })

  const openAll = (): Promise<unknown> =>
    Promise.all(Array.from({ length: 5 }, () => pool.query('SELECT pg_sleep(0.1)')))

  async function timed(work: () => Promise<unknown>): Promise<{ ms: number; error: unknown }> {
    const startedAt = performance.now()
    const error = await work().then(
      () => null,
      (reason: unknown) => reason,
    )
    return { ms: performance.now() - startedAt, error }
  }

  it('cancels a statement in time, and closes the other connections at once: the next statement works', async () => {
    await openAll()
    proxy.fallSilent('open')
    const lost = await timed(() => pool.query('SELECT 1'))
    expect(isDatabaseUnavailable(lost.error), String(lost.error)).to.equal(true)
    expect(lost.ms).to.be.below(LIMIT_MS)
    const next = await timed(() => pool.query('SELECT 1'))
    expect(next.error).to.equal(null)
    expect(next.ms).to.be.below(lost.ms)
    expect(poolStatus(pool)).to.include({ total: 1 })
  })

  it('keeps connections that answered meanwhile', async () => {
    await openAll()
    const [lost] = await Promise.all([
      timed(() => pool.query(`SELECT pg_sleep(0.5)`)),
      delay(100).then(() => proxy.fallSilent('open')),
    ])
    expect(isDatabaseUnavailable(lost.error), String(lost.error)).to.equal(true)
    const before = poolStatus(pool).total
    await Promise.all(Array.from({ length: 3 }, () => pool.query('SELECT pg_sleep(0.2)')))
    expect(poolStatus(pool).total).to.be.at.least(before)
    expect((await timed(() => pool.query('SELECT 1'))).error).to.equal(null)
  })

  it('reads an answer that came while this process was paused, and keeps its connection', async () => {
    const direct = createDataSource({
      url: database.url,
      poolSize: 1,
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    })
    await direct.initialize()
    const pid = (): Promise<{ pid: number }[]> =>
      direct.query('SELECT pg_backend_pid() AS pid, pg_sleep(0.3)')
    const before = await pid()
    const answered = pid()
    await delay(50)
    await blockProcess(STATEMENT_TIMEOUT_MS + 2_500)
    expect(await answered.catch(String)).to.deep.equal(before)
    await closeDataSource(direct)
  })

  it('cancels a transaction whose connection fell silent between two statements', async () => {
    const lost = await timed(() =>
      pool.transaction(async (manager) => {
        await manager.query('SELECT 1')
        proxy.fallSilent('open')
        await manager.query('SELECT 2')
      }),
    )
    expect(isDatabaseUnavailable(lost.error), String(lost.error)).to.equal(true)
    expect(lost.ms).to.be.below(LIMIT_MS)
    expect(poolStatus(pool)).to.include({ waiting: 0 })
  })

  it('cancels a transaction whose connection is cut between two statements', async () => {
    const lost = await timed(() =>
      pool.transaction(async (manager) => {
        await manager.query('SELECT 1')
        proxy.cut()
        await delay(100)
        await manager.query('SELECT 2')
      }),
    )
    expect(isDatabaseUnavailable(lost.error), String(lost.error)).to.equal(true)
  })

  it('stops connecting in time while new connections are silent too, and recovers when they work', async () => {
    await openAll()
    proxy.fallSilent('all')
    await Promise.all(Array.from({ length: 10 }, () => timed(() => pool.query('SELECT 1'))))
    const lost = await timed(() => pool.query('SELECT 1'))
    expect(isDatabaseUnavailable(lost.error), String(lost.error)).to.equal(true)
    expect(lost.ms).to.be.below(LIMIT_MS)
    proxy.speak()
    await timed(() => pool.query('SELECT 1'))
    expect((await timed(() => pool.query('SELECT 1'))).error).to.equal(null)
  })

  it('closes while statements hang', async () => {
    await openAll()
    proxy.fallSilent('all')
    const lost = Array.from({ length: 8 }, () => timed(() => pool.query('SELECT 1')))
    await delay(100)
    expect((await timed(() => closeDataSource(pool))).ms).to.be.below(LIMIT_MS)
    await Promise.all(lost)
  })

  it('lets the server cancel a long statement, and keeps the connection', async () => {
    const cancelled = await timed(() => pool.query('SELECT pg_sleep(30)'))
    expect(cancelled.error).to.include({ code: '57014' })
    expect(poolStatus(pool)).to.include({ total: 1, idle: 1 })
  })

  it('gives statements more time where requested, until the end of the transaction', async () => {
    await pool.transaction(async (manager) => {
      await allowLongerStatements(manager, 10_000)
      await manager.query('SELECT pg_sleep(3.5)')
    })
    const cancelled = await timed(() => pool.query('SELECT pg_sleep(30)'))
    expect(cancelled.error).to.include({ code: '57014' })
  })
})

import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import type { DataSource } from 'typeorm'
import { CALLER_TTL_MS, createCallerLookup } from '../../../src/accounts/caller-lookup.ts'
import { createMember } from '../../helpers/database/factories.ts'
import { useDatabase } from '../../helpers/database/database.ts'

describe('the caller lookup', () => {
  const database = useDatabase()
  const run = (sql: string, ...parameters: unknown[]) => database.dataSource.query(sql, parameters)

  /** The pool, and how many of its statements looked a key up. */
  function counting(): { dataSource: DataSource; lookUps: () => number } {
    let count = 0
    const { dataSource } = database
    const query = (sql: string, parameters?: unknown[]): Promise<unknown> => {
      if (sql.includes('FROM api_key')) count++
      return dataSource.query(sql, parameters)
    }
    const counted = new Proxy(dataSource, {
      get: (target, name) => (name === 'query' ? query : (Reflect.get(target, name) as unknown)),
    })
    return { dataSource: counted, lookUps: () => count }
  }
  /** Asks until the answer is right; no request that begins later than `ttlMs` from now gets a wrong one. */
  const expectWithin = async (ttlMs: number, isRight: () => Promise<boolean>): Promise<void> => {
    const startedAtMs = performance.now()
    for (;;) {
      const beganAfterMs = performance.now() - startedAtMs
      if (await isRight()) return
      expect(beganAfterMs).to.be.below(ttlMs)
      await delay(20)
    }
  }
  const expectNullWithin = (ttlMs: number, find: () => Promise<unknown>): Promise<void> =>
    expectWithin(ttlMs, async () => (await find()) === null)

  it('reads a key once for concurrent requests, and for those that follow before it is read again', async () => {
    const { apiKey, memberId } = await createMember(database.dataSource)
    const { dataSource, lookUps } = counting()
    const find = createCallerLookup(dataSource, 60_000)
    const callers = await Promise.all(Array.from({ length: 200 }, () => find(apiKey)))
    expect(callers.every((caller) => caller?.memberId === memberId)).to.equal(true)
    expect((await find(apiKey))?.memberId).to.equal(memberId)
    expect(lookUps()).to.equal(1)
  })

  it('reads a key again once a second', async () => {
    const { apiKey } = await createMember(database.dataSource)
    const { dataSource, lookUps } = counting()
    const find = createCallerLookup(dataSource, 100)
    await find(apiKey)
    await delay(110)
    await Promise.all([find(apiKey), find(apiKey)])
    expect(lookUps()).to.equal(2)
    expect(CALLER_TTL_MS).to.equal(1_000)
  })

  it('refuses a key within a second of its revocation', async () => {
    const { apiKey, memberId } = await createMember(database.dataSource)
    const find = createCallerLookup(database.dataSource)
    expect(await find(apiKey)).not.to.equal(null)
    await run('UPDATE api_key SET revoked_at = now() WHERE member_id = $1', memberId)
    await expectNullWithin(CALLER_TTL_MS, () => find(apiKey))
  })

  it('refuses an expired key, however recently it was read', async () => {
    const { apiKey, memberId } = await createMember(database.dataSource)
    await run(`UPDATE api_key SET expires_at = now() + interval '2 s' WHERE member_id = $1`, memberId)
    const { dataSource, lookUps } = counting()
    const find = createCallerLookup(dataSource, 60_000)
    expect(await find(apiKey)).not.to.equal(null)
    await expectNullWithin(2_000, () => find(apiKey))
    // One between the end by this process's clock and that by the database's; without a memory it is a hundred.
    expect(lookUps()).to.be.at.most(3)
    const [row] = (await run(
      'SELECT expires_at < clock_timestamp() AS expired FROM api_key WHERE member_id = $1',
      memberId,
    )) as { expired: boolean }[]
    expect(row!.expired).to.equal(true)
  })

  it('caches no unknown key, so that a new key works at once', async () => {
    const { dataSource, lookUps } = counting()
    const find = createCallerLookup(dataSource)
    const { apiKey, memberId } = await createMember(database.dataSource)
    await run('UPDATE api_key SET revoked_at = now() WHERE member_id = $1', memberId)
    for (let round = 0; round < 3; round++) expect(await find(apiKey)).to.equal(null)
    expect(lookUps()).to.equal(3)
    await run('UPDATE api_key SET revoked_at = NULL WHERE member_id = $1', memberId)
    expect((await find(apiKey))?.memberId).to.equal(memberId)
  })

  it('distinguishes callers', async () => {
    const find = createCallerLookup(database.dataSource)
    const members = await Promise.all([1, 2, 3].map(() => createMember(database.dataSource)))
    for (let round = 0; round < 2; round++) {
      const callers = await Promise.all(members.map(({ apiKey }) => find(apiKey)))
      expect(callers.map((caller) => caller?.memberId)).to.deep.equal(members.map(({ memberId }) => memberId))
    }
  })

  it('reads again after the database failed', async () => {
    const { apiKey, memberId } = await createMember(database.dataSource)
    let fails = true
    const query = (sql: string, parameters?: unknown[]): Promise<unknown> =>
      fails ? Promise.reject(new Error('no answer')) : database.dataSource.query(sql, parameters)
    const failing = new Proxy(database.dataSource, {
      get: (target, name) => (name === 'query' ? query : (Reflect.get(target, name) as unknown)),
    })
    const find = createCallerLookup(failing)
    const failure = await find(apiKey).catch((error: unknown) => error)
    expect(failure).to.be.instanceOf(Error)
    fails = false
    expect((await find(apiKey))?.memberId).to.equal(memberId)
  })
})

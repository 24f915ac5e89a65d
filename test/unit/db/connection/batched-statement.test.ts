import { expect } from 'chai'
import {
  DatabaseBusyError,
  DatabaseUnavailableError,
} from '../../../../src/db/connection/connection-errors.ts'
import { createBatchedStatement } from '../../../../src/db/connection/database-queues.ts'
import { useMockTime } from '../../../helpers/use-mock-time.ts'

describe('createBatchedStatement', () => {
  const time = useMockTime()
  const delay = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

  it('runs the first item at once and alone, and later items together', async () => {
    const groups: number[][] = []
    const grouped = createBatchedStatement<number, string>({
      async runAll(items) {
        groups.push(items)
        await delay(5)
        return items.map(String)
      },
      maxConcurrent: 1,
      maxBatchSize: 3,
    })
    const results = await time.until(Promise.all([1, 2, 3, 4, 5, 6].map((item) => grouped(item))))
    expect(results).to.deep.equal(['1', '2', '3', '4', '5', '6'])
    expect(groups).to.deep.equal([[1], [2, 3, 4], [5, 6]])
  })

  for (const [title, groupMs, together] of [
    ['one group after the other, so that they grow', 1, 1],
    ['no more groups at once than maxConcurrent, when they are slow', 25, 2],
  ] as const) {
    it(`runs ${title}`, async () => {
      let [underWay, most] = [0, 0]
      const grouped = createBatchedStatement<number, number>({
        async runAll(items) {
          most = Math.max(most, ++underWay)
          await delay(groupMs)
          underWay--
          return items
        },
        maxConcurrent: 2,
        maxBatchSize: 5,
      })
      await time.until(Promise.all(Array.from({ length: 40 }, (_, item) => grouped(item))))
      expect(most).to.equal(together)
    })
  }

  it('waits lingerMs for others to join an item, but not once a group is full', async () => {
    const groups: { items: number[]; atMs: number }[] = []
    const grouped = createBatchedStatement<number, number>({
      runAll(items) {
        groups.push({ items, atMs: Date.now() - startedMs })
        return Promise.resolve(items)
      },
      maxConcurrent: 1,
      maxBatchSize: 3,
      lingerMs: 10,
    })
    const startedMs = Date.now()
    const late = delay(4).then(() => grouped(2))
    await time.until(Promise.all([grouped(1), late]))
    await time.until(Promise.all([3, 4, 5, 6].map((item) => grouped(item))))
    expect(groups).to.deep.equal([
      { items: [1, 2], atMs: 10 },
      { items: [3, 4, 5], atMs: 10 },
      { items: [6], atMs: 20 },
    ])
  })

  it('rejects only the item that causes an error', async () => {
    const grouped = createBatchedStatement<number, number>({
      runAll: (items) =>
        items.includes(3) ? Promise.reject(new Error('a bad one')) : Promise.resolve(items),
      maxConcurrent: 1,
      maxBatchSize: 10,
    })
    const settled = await Promise.allSettled([1, 2, 3, 4].map((item) => grouped(item)))
    expect(settled.map(({ status }) => status)).to.deep.equal([
      'fulfilled',
      'fulfilled',
      'rejected',
      'fulfilled',
    ])
  })

  it('retries nothing while the database is unavailable', async () => {
    let runs = 0
    const away = Object.assign(new Error('gone'), { code: 'ECONNREFUSED' })
    const grouped = createBatchedStatement<number, number>({
      runAll() {
        runs++
        return Promise.reject(away)
      },
      maxConcurrent: 1,
      maxBatchSize: 10,
    })
    const settled = await Promise.allSettled([1, 2, 3].map((item) => grouped(item)))
    expect(settled.map((one) => (one.status === 'rejected' ? (one.reason as unknown) : null))).to.deep.equal([
      away,
      away,
      away,
    ])
    // The first one alone, and the others together.
    expect(runs).to.equal(2)
  })

  describe('while no batch returns', () => {
    const never = new Promise<never>(() => undefined)

    it('rejects each caller in time', async () => {
      const grouped = createBatchedStatement<number, number>({
        runAll: () => never,
        maxConcurrent: 1,
        maxBatchSize: 2,
        timeoutMs: 20,
      })
      const settled = await time.until(Promise.allSettled([1, 2, 3, 4, 5].map((item) => grouped(item))))
      for (const one of settled)
        expect(one.status === 'rejected' && one.reason).to.be.instanceOf(DatabaseUnavailableError)
    })

    it('tells items that had no turn in time from those that may be committed', async () => {
      const grouped = createBatchedStatement<number, number>({
        runAll: () => never,
        maxConcurrent: 1,
        maxBatchSize: 1,
        startTimeoutMs: 20,
        timeoutMs: 100,
      })
      const rejectedAt = async (item: number): Promise<unknown[]> => {
        const error: unknown = await grouped(item).catch((reason: unknown) => reason)
        return [error instanceof DatabaseBusyError && error.isBegun, Date.now() - startedMs]
      }
      const startedMs = Date.now()
      expect(await time.until(Promise.all([1, 2].map(rejectedAt)))).to.deep.equal([
        [true, 100],
        [false, 20],
      ])
    })

    it('bounds the number of waiting items', async () => {
      const grouped = createBatchedStatement<number, number>({
        runAll: () => never,
        maxConcurrent: 1,
        maxBatchSize: 1,
        timeoutMs: 10_000,
        maxQueued: 3,
      })
      const refused: number[] = []
      for (let item = 1; item <= 6; item++) grouped(item).catch(() => refused.push(item))
      await new Promise(setImmediate)
      // One is in progress and three wait.
      expect(refused).to.deep.equal([5, 6])
    })

    it('runs no item whose caller was rejected', async () => {
      const ran: number[] = []
      let end: () => void = () => undefined
      const held = new Promise<void>((resolve) => (end = resolve))
      const grouped = createBatchedStatement<number, number>({
        async runAll(items) {
          ran.push(...items)
          if (items.includes(1)) await held
          return items
        },
        maxConcurrent: 1,
        maxBatchSize: 10,
        timeoutMs: 20,
      })
      await time.until(Promise.allSettled([grouped(1), grouped(2)]))
      end()
      expect(await grouped(3)).to.equal(3)
      expect(ran).to.deep.equal([1, 3])
    })
  })

  for (const [title, code] of [
    ['another transaction holds the lock of a row', '55P03'],
    ['their statement runs into its time limit', '57014'],
  ] as const) {
    it(`runs the items one by one where ${title}`, async () => {
      const cancelled = Object.assign(new Error('canceling statement'), { code })
      const grouped = createBatchedStatement<number, number>({
        runAll: (items) =>
          items.length > 1 || items[0] === 3 ? Promise.reject(cancelled) : Promise.resolve(items),
        maxConcurrent: 1,
        maxBatchSize: 10,
      })
      const settled = await Promise.allSettled([0, 1, 2, 3].map((item) => grouped(item)))
      expect(settled.map(({ status }) => status)).to.deep.equal([
        'fulfilled',
        'fulfilled',
        'fulfilled',
        'rejected',
      ])
    })
  }

  it('runs an item that failed alone no second time', async () => {
    let runs = 0
    const failed = new Error('failed')
    const grouped = createBatchedStatement<number, number>({
      runAll() {
        runs++
        return Promise.reject(failed)
      },
      maxConcurrent: 1,
      maxBatchSize: 10,
    })
    expect(await grouped(1).catch((error: unknown) => error)).to.equal(failed)
    expect(runs).to.equal(1)
  })

  describe('with many rows', () => {
    type Sized = { key: string; rows: number }

    /** Returns the groups in which the items are run, after an item that keeps them waiting. */
    async function groupsOf(items: Sized[]): Promise<string[][]> {
      const groups: string[][] = []
      const grouped = createBatchedStatement<Sized, null>({
        async runAll(group) {
          groups.push(group.map(({ key, rows }) => `${key}${rows}`))
          await delay(5)
          return group.map(() => null)
        },
        maxConcurrent: 1,
        maxBatchSize: 4,
        keyOf: ({ key }) => key,
        rowsOf: ({ rows }) => rows,
        maxRows: 10,
      })
      await time.until(Promise.all([{ key: 'first', rows: 1 }, ...items].map((item) => grouped(item))))
      return groups.slice(1)
    }
    const sized = (key: string, ...rows: number[]): Sized[] => rows.map((each) => ({ key, rows: each }))

    it('takes no more of them into a group than maxRows', async () => {
      const groups = await groupsOf(sized('a', 4, 4, 4, 2, 4, 1))
      expect(groups).to.deep.equal([['a4', 'a4'], ['a4', 'a2', 'a4'], ['a1']])
    })

    it('runs an item that has more alone', async () => {
      const groups = await groupsOf(sized('a', 1, 11, Infinity, 1, 1))
      expect(groups).to.deep.equal([['a1'], ['a11'], ['aInfinity'], ['a1', 'a1']])
    })

    it('takes the keys in turn', async () => {
      const groups = await groupsOf([...sized('a', 5, 5, 5, 5), ...sized('b', 1), ...sized('c', 1)])
      expect(groups).to.deep.equal([['a5', 'b1', 'c1'], ['a5', 'a5'], ['a5']])
    })
  })
})

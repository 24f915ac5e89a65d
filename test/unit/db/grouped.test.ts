import { expect } from 'chai'
import { DatabaseUnavailableError } from '../../../src/db/connection-errors.ts'
import { createGrouped } from '../../../src/db/grouped.ts'
import { useMockTime } from '../../helpers/use-mock-time.ts'

describe('createGrouped', () => {
  const time = useMockTime()
  const delay = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

  it('runs the first item at once and alone, and together what comes meanwhile', async () => {
    const groups: number[][] = []
    const grouped = createGrouped<number, string>({
      async runAll(items) {
        groups.push(items)
        await delay(5)
        return items.map(String)
      },
      runOne: () => Promise.reject(new Error('not needed')),
      lanes: 1,
      most: 3,
    })
    const results = await time.until(Promise.all([1, 2, 3, 4, 5, 6].map((item) => grouped(item))))
    expect(results).to.deep.equal(['1', '2', '3', '4', '5', '6'])
    expect(groups).to.deep.equal([[1], [2, 3, 4], [5, 6]])
  })

  for (const [title, groupMs, together] of [
    ['one group after the other, so that they grow', 1, 1],
    ['no more groups at once than it has lanes, when they take long', 25, 2],
  ] as const) {
    it(`runs ${title}`, async () => {
      let [underWay, most] = [0, 0]
      const grouped = createGrouped<number, number>({
        async runAll(items) {
          most = Math.max(most, ++underWay)
          await delay(groupMs)
          underWay--
          return items
        },
        runOne: (item) => Promise.resolve(item),
        lanes: 2,
        most: 5,
      })
      await time.until(Promise.all(Array.from({ length: 40 }, (_, item) => grouped(item))))
      expect(most).to.equal(together)
    })
  }

  it("makes one item's error nobody else's", async () => {
    const grouped = createGrouped<number, number>({
      runAll: (items) =>
        items.includes(3) ? Promise.reject(new Error('a bad one')) : Promise.resolve(items),
      runOne: (item) => (item === 3 ? Promise.reject(new Error('three')) : Promise.resolve(item)),
      lanes: 1,
      most: 10,
    })
    const settled = await Promise.allSettled([1, 2, 3, 4].map((item) => grouped(item)))
    expect(settled.map(({ status }) => status)).to.deep.equal([
      'fulfilled',
      'fulfilled',
      'rejected',
      'fulfilled',
    ])
  })

  it('tries nothing again while the database is away: that is for the caller to say', async () => {
    let tries = 0
    const away = Object.assign(new Error('gone'), { code: 'ECONNREFUSED' })
    const grouped = createGrouped<number, number>({
      runAll: () => Promise.reject(away),
      runOne: () => Promise.resolve(++tries),
      lanes: 1,
      most: 10,
    })
    const settled = await Promise.allSettled([1, 2, 3].map((item) => grouped(item)))
    expect(settled.map((one) => (one.status === 'rejected' ? (one.reason as unknown) : null))).to.deep.equal([
      away,
      away,
      away,
    ])
    expect(tries).to.equal(0)
  })

  describe('while no group comes back', () => {
    const never = new Promise<never>(() => undefined)

    it('tells each caller in time that the database is away', async () => {
      const grouped = createGrouped<number, number>({
        runAll: () => never,
        runOne: () => never,
        lanes: 1,
        most: 2,
        timeoutMs: 20,
      })
      const settled = await time.until(Promise.allSettled([1, 2, 3, 4, 5].map((item) => grouped(item))))
      for (const one of settled)
        expect(one.status === 'rejected' && one.reason).to.be.instanceOf(DatabaseUnavailableError)
    })

    it('lets no more wait than it has room for', async () => {
      const grouped = createGrouped<number, number>({
        runAll: () => never,
        runOne: () => never,
        lanes: 1,
        most: 1,
        timeoutMs: 10_000,
        maxQueued: 3,
      })
      const refused: number[] = []
      for (let item = 1; item <= 6; item++) grouped(item).catch(() => refused.push(item))
      await new Promise(setImmediate)
      // One is under way and three wait.
      expect(refused).to.deep.equal([5, 6])
    })

    it('runs nothing any more whose caller was told so', async () => {
      const ran: number[] = []
      let end: () => void = () => undefined
      const held = new Promise<void>((resolve) => (end = resolve))
      const grouped = createGrouped<number, number>({
        async runAll(items) {
          ran.push(...items)
          if (items.includes(1)) await held
          return items
        },
        runOne: (item) => Promise.resolve(item),
        lanes: 1,
        most: 10,
        timeoutMs: 20,
      })
      await time.until(Promise.allSettled([grouped(1), grouped(2)]))
      end()
      expect(await grouped(3)).to.equal(3)
      expect(ran).to.deep.equal([1, 3])
    })
  })

  it('runs the items one by one where another transaction holds the lock of a row', async () => {
    const locked = Object.assign(new Error('canceling statement due to lock timeout'), { code: '55P03' })
    const grouped = createGrouped<number, number>({
      runAll: () => Promise.reject(locked),
      runOne: (item) => (item === 3 ? Promise.reject(locked) : Promise.resolve(item)),
      lanes: 1,
      most: 10,
    })
    const settled = await Promise.allSettled([1, 2, 3].map((item) => grouped(item)))
    expect(settled.map(({ status }) => status)).to.deep.equal(['fulfilled', 'fulfilled', 'rejected'])
  })
})

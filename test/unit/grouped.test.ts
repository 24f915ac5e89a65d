import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { createGrouped } from '../../src/db/grouped.ts'

describe('createGrouped', () => {
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
    const results = await Promise.all([1, 2, 3, 4, 5, 6].map((item) => grouped(item)))
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
      await Promise.all(Array.from({ length: 40 }, (_, item) => grouped(item)))
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
})

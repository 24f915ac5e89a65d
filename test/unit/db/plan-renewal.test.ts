import { expect } from 'chai'
import { createPlanRenewal } from '../../../src/db/connection/database-client.ts'

describe('createPlanRenewal', () => {
  it('renews plans whenever the number of statements has doubled', () => {
    const renewal = createPlanRenewal(() => 0)
    const due = Array.from({ length: 300 }, (_, index) => (renewal.isDue() ? [index + 1] : [])).flat()
    expect(due).to.deep.equal([16, 32, 64, 128, 256])
  })

  it('renews plans that are five seconds old', () => {
    let now = 0
    const renewal = createPlanRenewal(() => now)
    const askAt = (ms: number): boolean => {
      now = ms
      return renewal.isDue()
    }
    expect([0, 4_999, 5_000, 9_999, 10_000].map(askAt)).to.deep.equal([false, false, true, false, true])
  })
})

import { expect } from 'chai'
import { createRunningClock } from '../../../../src/timers.ts'
import { useMockTime } from '../../../helpers/use-mock-time.ts'

describe('the running clock', () => {
  const time = useMockTime()

  it('counts a stall as 200 ms, however long it lasts', () => {
    let now = 1_000
    const runningMs = createRunningClock(() => now)
    expect(runningMs()).to.equal(0)
    now += 150
    expect(runningMs()).to.equal(150)
    now += 60_000
    expect(runningMs()).to.equal(200)
  })

  it('advances while the event loop runs', async () => {
    const runningMs = createRunningClock()
    const startedAtMs = performance.now()
    await time.pass(250)
    expect(runningMs()).to.be.within(150, performance.now() - startedAtMs + 1)
  })
})

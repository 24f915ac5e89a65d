import { expect } from 'chai'
import { createPauseWatch, createRunningClock } from '../../src/timers.ts'
import { useMockTime } from '../helpers/use-mock-time.ts'

describe('the pause watch', () => {
  let nowMs = 0
  const create = () => {
    nowMs = 0
    return createPauseWatch(() => nowMs)
  }

  it('detects no pause while the event loop runs, busy or not', () => {
    const pauses = create()
    for (const step of [500, 900, 2_400, 10]) {
      nowMs += step
      expect(pauses.pausedSince(0)).to.equal(false)
    }
    pauses.stop()
  })

  it('detects a pause that has just ended, for what began before its end', () => {
    const pauses = create()
    nowMs = 25_000
    expect(pauses.pausedSince(24_000)).to.equal(true)
    nowMs = 25_100
    expect(pauses.pausedSince(24_999)).to.equal(true)
    expect(pauses.pausedSince(25_050)).to.equal(false)
    pauses.stop()
  })
})

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

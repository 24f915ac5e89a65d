import { expect } from 'chai'
import { createPace, createPauseWatch, createRunningClock } from '../../src/timers.ts'
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
      expect(pauses.pausedSince(0, 'long')).to.equal(false)
    }
    pauses.stop()
  })

  it('detects a pause that has just ended, for what began before its end', () => {
    const pauses = create()
    nowMs = 25_000
    expect(pauses.pausedSince(24_000, 'long')).to.equal(true)
    nowMs = 25_100
    expect(pauses.pausedSince(24_999, 'long')).to.equal(true)
    expect(pauses.pausedSince(25_050, 'short')).to.equal(false)
    nowMs = 26_800
    expect(pauses.pausedSince(26_000, 'long')).to.equal(false)
    expect(pauses.pausedSince(26_000, 'short')).to.equal(true)
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

describe('a pace', () => {
  let now: number
  let waits: number[]
  const timers = {
    nowMs: () => now,
    after(ms: number, run: () => void) {
      waits.push(ms)
      queueMicrotask(run)
      return () => undefined
    },
  }
  const options = { intervalMs: 18, timers }
  beforeEach(() => {
    now = 0
    waits = []
  })

  it('starts the first at once, the others 18 ms after each other, and delays none by more than 600 ms', async () => {
    const pace = createPace({ ...options, maxDelayMs: 600 })
    expect(pace.waitMs()).to.equal(0)
    for (let count = 0; count < 100; count++) await pace.next()
    expect(pace.waitMs()).to.equal(600)
    expect(waits).to.deep.equal(Array.from({ length: 99 }, (_, index) => Math.min(18 * (index + 1), 600)))
  })

  it('starts the next at once after a pause', async () => {
    const pace = createPace(options)
    for (const atMs of [0, 0, 1_000]) {
      now = atMs
      await pace.next()
    }
    expect(waits).to.deep.equal([18])
  })

  it('releases all waiting starts when the signal aborts, and delays none after that', async () => {
    const stopping = new AbortController()
    const pace = createPace({ intervalMs: 60_000 })
    await pace.next(stopping.signal)
    const waiting = pace.next(stopping.signal)
    stopping.abort()
    await waiting
    await pace.next(stopping.signal)
  })
})

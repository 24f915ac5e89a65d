import { expect } from 'chai'
import { createPace } from '../../../../src/deliveries/attempt/pace.ts'

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

import { expect } from 'chai'
import { createBackpressure } from '../../../../src/deliveries/dispatch/backpressure.ts'

/** Longer than what came counts. */
const FORGOTTEN_MS = 1_150

describe('backpressure', () => {
  function createTemporalService() {
    const temporal = { waiting: 0, isUnavailable: false }
    let nowMs = 1_000_000
    const backpressure = createBackpressure({
      waiting: () => temporal.waiting,
      isTemporalUnavailable: () => temporal.isUnavailable,
      nowMs: () => nowMs,
    })
    const forget = (): void => void (nowMs += FORGOTTEN_MS)
    const arrive = (count: number): void => {
      for (let arrived = 0; arrived < count; arrived++) backpressure.arrived(1)
    }
    return { temporal, backpressure, arrive, forget }
  }

  it('does not report Temporal as behind while it keeps up, however many deliveries arrive', () => {
    const { backpressure, temporal, arrive } = createTemporalService()
    temporal.waiting = 15
    arrive(1_000)
    expect(backpressure.isTemporalBehind()).to.equal(false)
  })

  it('reports Temporal as behind when sixteen deliveries wait for it, and while it is unavailable', () => {
    const { backpressure, temporal } = createTemporalService()
    temporal.waiting = 16
    expect(backpressure.isTemporalBehind()).to.equal(true)
    Object.assign(temporal, { waiting: 0, isUnavailable: true })
    expect(backpressure.isTemporalBehind()).to.equal(true)
  })

  it('reports Temporal as behind until a burst is over, and no longer', () => {
    const { backpressure, temporal, arrive, forget } = createTemporalService()
    arrive(16)
    temporal.waiting = 16
    expect(backpressure.isTemporalBehind()).to.equal(true)
    temporal.waiting = 0
    expect(backpressure.isTemporalBehind()).to.equal(true)
    forget()
    arrive(15)
    expect(backpressure.isTemporalBehind()).to.equal(false)
    arrive(30)
    expect(backpressure.isTemporalBehind()).to.equal(false)
  })

  it('is quiet while fewer than fifty deliveries arrive in a second and Temporal is not behind', () => {
    const { backpressure, temporal, arrive, forget } = createTemporalService()
    arrive(49)
    expect(backpressure.isQuiet()).to.equal(true)
    arrive(1)
    expect(backpressure.isQuiet()).to.equal(false)
    forget()
    expect(backpressure.isQuiet()).to.equal(true)
    temporal.waiting = 16
    expect(backpressure.isQuiet()).to.equal(false)
    Object.assign(temporal, { waiting: 0, isUnavailable: true })
    expect(backpressure.isQuiet()).to.equal(false)
  })
})

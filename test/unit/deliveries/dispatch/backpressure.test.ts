import { expect } from 'chai'
import { createBackpressure } from '../../../../src/deliveries/dispatch/backpressure.ts'

/** Longer than what came counts. */
const FORGOTTEN_MS = 1_150

describe('whether the engine is behind', () => {
  function createEngine() {
    const engine = { waiting: 0, away: false }
    let nowMs = 1_000_000
    const backpressure = createBackpressure({
      waiting: () => engine.waiting,
      isAway: () => engine.away,
      nowMs: () => nowMs,
    })
    const forget = (): void => void (nowMs += FORGOTTEN_MS)
    const arrive = (count: number): void => {
      for (let arrived = 0; arrived < count; arrived++) backpressure.arrived()
    }
    return { engine, backpressure, arrive, forget }
  }

  it('is not while it keeps up, however much comes', () => {
    const { backpressure, engine, arrive } = createEngine()
    engine.waiting = 15
    arrive(1_000)
    expect(backpressure.isTemporalBehind()).to.equal(false)
  })

  it('is when sixteen wait for it, and while it is away', () => {
    const { backpressure, engine } = createEngine()
    engine.waiting = 16
    expect(backpressure.isTemporalBehind()).to.equal(true)
    Object.assign(engine, { waiting: 0, away: true })
    expect(backpressure.isTemporalBehind()).to.equal(true)
  })

  it('stays so until a burst is over, and no longer', () => {
    const { backpressure, engine, arrive, forget } = createEngine()
    arrive(16)
    engine.waiting = 16
    expect(backpressure.isTemporalBehind()).to.equal(true)
    engine.waiting = 0
    expect(backpressure.isTemporalBehind()).to.equal(true)
    forget()
    arrive(15)
    expect(backpressure.isTemporalBehind()).to.equal(false)
    arrive(30)
    expect(backpressure.isTemporalBehind()).to.equal(false)
  })

  it('leaves room for what can wait while less than fifty come in a second, and nothing is behind', () => {
    const { backpressure, engine, arrive, forget } = createEngine()
    arrive(49)
    expect(backpressure.isQuiet()).to.equal(true)
    arrive(1)
    expect(backpressure.isQuiet()).to.equal(false)
    forget()
    expect(backpressure.isQuiet()).to.equal(true)
    engine.waiting = 16
    expect(backpressure.isQuiet()).to.equal(false)
    Object.assign(engine, { waiting: 0, away: true })
    expect(backpressure.isQuiet()).to.equal(false)
  })
})

import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { createOverflow } from '../../../src/delivery/overflow.ts'

/** Longer than what came counts. */
const FORGOTTEN_MS = 1_150

describe('whether the engine is behind', () => {
  function createEngine() {
    const engine = { waiting: 0, away: false }
    const overflow = createOverflow({ waiting: () => engine.waiting, isAway: () => engine.away })
    const arrive = (count: number): void => {
      for (let arrived = 0; arrived < count; arrived++) overflow.arrived()
    }
    return { engine, overflow, arrive }
  }

  it('is not while it keeps up, however much comes', () => {
    const { overflow, engine, arrive } = createEngine()
    engine.waiting = 15
    arrive(1_000)
    expect(overflow.isBehind()).to.equal(false)
  })

  it('is when sixteen wait for it, and while it is away', () => {
    const { overflow, engine } = createEngine()
    engine.waiting = 16
    expect(overflow.isBehind()).to.equal(true)
    Object.assign(engine, { waiting: 0, away: true })
    expect(overflow.isBehind()).to.equal(true)
  })

  it('stays so until a burst is over, and no longer', async () => {
    const { overflow, engine, arrive } = createEngine()
    arrive(16)
    engine.waiting = 16
    expect(overflow.isBehind()).to.equal(true)
    engine.waiting = 0
    expect(overflow.isBehind()).to.equal(true)
    await delay(FORGOTTEN_MS)
    arrive(15)
    expect(overflow.isBehind()).to.equal(false)
    arrive(30)
    expect(overflow.isBehind()).to.equal(false)
  })

  it('leaves room for what can wait while less than fifty come in a second, and nothing is behind', async () => {
    const { overflow, engine, arrive } = createEngine()
    arrive(49)
    expect(overflow.isQuiet()).to.equal(true)
    arrive(1)
    expect(overflow.isQuiet()).to.equal(false)
    await delay(FORGOTTEN_MS)
    expect(overflow.isQuiet()).to.equal(true)
    engine.waiting = 16
    expect(overflow.isQuiet()).to.equal(false)
    Object.assign(engine, { waiting: 0, away: true })
    expect(overflow.isQuiet()).to.equal(false)
  })
})

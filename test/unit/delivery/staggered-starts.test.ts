import { expect } from 'chai'
import { createStaggeredStarts } from '../../../src/delivery/staggered-starts.ts'

/** Early by as much as a timer of Node may be. */
const TIMER_MS = 2

describe('staggered starts', () => {
  it('begin at once, then one after the other, and none later than it may', async () => {
    const starts = createStaggeredStarts()
    const startedAtMs = performance.now()
    const waits: number[] = []
    for (let count = 0; count < 100; count++)
      starts.add(() => Promise.resolve(waits.push(performance.now() - startedAtMs)))
    await starts.idle()
    expect(waits).to.have.length(100)
    expect(waits[0]).to.be.below(100)
    for (const [index, wait] of waits.slice(0, 20).entries())
      expect(wait).to.be.at.least(18 * index - TIMER_MS)
    expect(Math.max(...waits)).to.be.within(600 - TIMER_MS, 900)
  })
})

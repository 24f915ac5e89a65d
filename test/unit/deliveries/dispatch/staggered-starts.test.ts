import { expect } from 'chai'
import { createStaggeredStarts } from '../../../../src/deliveries/dispatch/staggered-starts.ts'

describe('staggered starts', () => {
  it('begin at once, then 18 ms apart, and none later than 600 ms', async () => {
    const waits: number[] = []
    const starts = createStaggeredStarts({
      nowMs: () => 0,
      sleep(ms) {
        waits.push(ms)
        return Promise.resolve()
      },
    })
    let started = 0
    for (let count = 0; count < 100; count++) starts.add(() => Promise.resolve(started++))
    await starts.idle()
    expect(started).to.equal(100)
    const expected = Array.from({ length: 99 }, (_, index) => Math.min(18 * (index + 1), 600))
    expect(waits).to.deep.equal(expected)
  })

  it('begin at once again after a pause', async () => {
    let now = 0
    const waits: number[] = []
    const starts = createStaggeredStarts({
      nowMs: () => now,
      sleep(ms) {
        waits.push(ms)
        return Promise.resolve()
      },
    })
    for (const atMs of [0, 0, 1_000]) {
      now = atMs
      starts.add(() => Promise.resolve())
    }
    await starts.idle()
    expect(waits).to.deep.equal([18])
  })
})

import { expect } from 'chai'
import { createPollLoop } from '../../src/poll-loop.ts'
import { silentLogger } from '../helpers/silent-logger.ts'
import { createVirtualTime } from './deliveries/dispatch/simulation/virtual-time.ts'

describe('a poll loop', () => {
  it('begins passes less often while they fail, up to one a second, and as before once one succeeds', async () => {
    const timers = createVirtualTime()
    const begunAtMs: number[] = []
    let isFailing = true
    const loop = createPollLoop({
      intervalMs: 100,
      run: () => {
        begunAtMs.push(timers.nowMs())
        return isFailing ? Promise.reject(new Error('no database')) : Promise.resolve(false)
      },
      event: 'test.failed',
      logger: silentLogger,
      timers,
    })
    loop.start()
    await timers.run(3_500)
    isFailing = false
    await timers.run(4_550)
    expect(begunAtMs).to.deep.equal([0, 200, 600, 1_400, 2_400, 3_400, 4_400, 4_500])
    await loop.stop()
  })
})

import { expect } from 'chai'
import { createBacklogLimit } from '../../../../src/deliveries/publish/backlog-limit.ts'
import { silentLogger } from '../../../helpers/silent-logger.ts'

describe('createBacklogLimit', () => {
  const LIMIT = 100

  function createLimit(options: { limit?: number; count?: () => Promise<number> } = {}) {
    const state = { waiting: 0, counts: 0, nowMs: 0, tookMs: 0 }
    const count = (): Promise<number> => {
      state.counts++
      state.nowMs += state.tookMs
      return Promise.resolve(state.waiting)
    }
    const backlog = createBacklogLimit({
      limit: LIMIT,
      count,
      logger: silentLogger,
      nowMs: () => state.nowMs,
      ...options,
    })
    return { state, backlog }
  }

  it('refuses when the limit is reached, and accepts again below it', async () => {
    const { state, backlog } = createLimit()
    state.waiting = LIMIT - 1
    expect(await backlog.isReached()).to.equal(false)
    state.nowMs += 2_000
    state.waiting = LIMIT
    // Counted behind the request that asked.
    expect(await backlog.isReached()).to.equal(false)
    expect(await backlog.isReached()).to.equal(true)
    state.nowMs += 500
    state.waiting = 0
    expect(await backlog.isReached()).to.equal(false)
  })

  it("adds this process's commits, and counts again before it refuses", async () => {
    const { state, backlog } = createLimit()
    await backlog.isReached()
    backlog.committed(LIMIT)
    state.nowMs += 300
    expect(await backlog.isReached()).to.equal(false)
    backlog.committed(LIMIT)
    state.waiting = LIMIT
    state.nowMs += 300
    expect(await backlog.isReached()).to.equal(true)
    expect(state.counts).to.equal(3)
  })

  it('counts at most once a second below the limit, and less often where counting takes long', async () => {
    const { state, backlog } = createLimit()
    for (let asked = 0; asked < 100; asked++) {
      await backlog.isReached()
      state.nowMs += 20
    }
    expect(state.counts).to.be.within(2, 3)
    state.tookMs = 500
    state.nowMs += 1_001
    await backlog.isReached()
    const before = state.counts
    state.nowMs += 9_000
    await backlog.isReached()
    expect(state.counts).to.equal(before)
  })

  it('accepts when the backlog cannot be counted, and counts nothing without a limit', async () => {
    const failing = createLimit({ count: () => Promise.reject(new Error('away')) })
    failing.backlog.committed(LIMIT)
    expect(await failing.backlog.isReached()).to.equal(false)
    const unlimited = createLimit({ limit: 0 })
    unlimited.backlog.committed(LIMIT)
    expect(await unlimited.backlog.isReached()).to.equal(false)
    expect(unlimited.state.counts).to.equal(0)
  })
})

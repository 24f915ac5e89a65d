import { expect } from 'chai'
import { createEndpoints, type Deferral } from '../../../../src/deliveries/attempt/endpoint-concurrency.ts'
import type { PostOutcome, Slot } from '../../../../src/deliveries/attempt/endpoint.ts'
import { processTimers } from '../../../../src/timers.ts'

type TimedOutcome = PostOutcome & { durationMs: number }

const QUICK: TimedOutcome = { succeeded: true, durationMs: 20, isTimeout: false }
const SLOW: TimedOutcome = { succeeded: true, durationMs: 5_000, isTimeout: false }
const REFUSED: TimedOutcome = { succeeded: false, durationMs: 5, isTimeout: false }
const TIMED_OUT: TimedOutcome = { succeeded: false, durationMs: 15_000, isTimeout: true }

const isSlot = (result: Slot | Deferral): result is Slot => 'release' in result

/** Endpoints on a manual clock. */
function create(options: { maxLimit?: number; initialLimit?: number } = {}) {
  let nowMs = 1_000_000
  let stalledMs = 0
  let deliveries = 0
  const clocks = { timers: { ...processTimers, nowMs: () => nowMs }, runningMs: () => nowMs - stalledMs }
  const endpoints = createEndpoints({ maxLimit: 50, ...options, ...clocks })
  const acquire = (webhookId = 'w') => endpoints.acquire(webhookId, `delivery-${deliveries++}`)
  const post = (webhookId = 'w'): Slot => {
    const slot = acquire(webhookId)
    if (!isSlot(slot)) throw new Error('no slot is free')
    slot.begin()
    return slot
  }
  /** As many POSTs as the limit allows, which all end as `outcome` after its duration. */
  const round = (outcome: TimedOutcome): void => {
    const slots = Array.from({ length: endpoints.limit('w') }, () => post())
    nowMs += outcome.durationMs
    for (const slot of slots) slot.release(outcome)
  }
  const rounds = (count: number, outcome: TimedOutcome): void => {
    for (let index = 0; index < count; index++) round(outcome)
  }
  const pass = (ms: number): void => void (nowMs += ms)
  /** The process does not run meanwhile. */
  const stall = (ms: number): void => {
    nowMs += ms
    stalledMs += ms
  }
  return { endpoints, acquire, post, round, rounds, pass, stall, now: () => nowMs }
}

describe('the concurrency limit of an endpoint', () => {
  it('is one until the endpoint answers, then four, and doubles with each round of successes up to the maximum', () => {
    const { endpoints, round } = create()
    const limits = [endpoints.limit('w')]
    for (let count = 0; count < 6; count++) {
      round(QUICK)
      limits.push(endpoints.limit('w'))
    }
    expect(limits).to.deep.equal([1, 4, 8, 16, 32, 50, 50])
  })

  it('is halved once by a round of time-outs, and never falls below one', () => {
    const { endpoints, round } = create({ initialLimit: 20 })
    const limits = [20]
    for (let count = 0; count < 6; count++) {
      round(TIMED_OUT)
      limits.push(endpoints.limit('w'))
    }
    expect(limits).to.deep.equal([20, 10, 5, 2, 1, 1, 1])
  })

  it('grows by one with each round of successes after a reduction', () => {
    const { endpoints, round } = create({ initialLimit: 8 })
    round(TIMED_OUT)
    for (let count = 0; count < 4; count++) round(QUICK)
    expect(endpoints.limit('w')).to.be.within(7, 8)
  })

  it('stays at one while an endpoint only times out', () => {
    const { endpoints, round } = create()
    round(TIMED_OUT)
    expect(endpoints.limit('w')).to.equal(1)
    expect(endpoints.hasAnswered('w')).to.equal(false)
  })

  it('stays as it is for quick failures, and does not fall for slow successes', () => {
    const { endpoints, round } = create()
    round(REFUSED)
    expect(endpoints.limit('w')).to.equal(4)
    round(SLOW)
    expect(endpoints.limit('w')).to.equal(8)
  })

  it('has more room in a time the quicker its POSTs end, unless it hangs', () => {
    const { endpoints, round, rounds, post, pass } = create()
    const rooms = [endpoints.room('w', 250)]
    round({ ...REFUSED, durationMs: 100 })
    rooms.push(endpoints.room('w', 250))
    rounds(20, REFUSED)
    rooms.push(endpoints.room('w', 250))
    const busy = post()
    rooms.push(endpoints.room('w', 250))
    expect(rooms, 'unknown, refusing in 100 ms, in 5 ms, with one in flight').to.deep.equal([1, 12, 200, 199])
    busy.release(null)
    post()
    pass(1_001)
    expect(endpoints.room('w', 250), 'hanging').to.equal(1)
    const slow = create()
    slow.round(SLOW)
    expect(slow.endpoints.room('w', 250), 'slow').to.equal(slow.endpoints.limit('w'))
  })

  it('drops to two while the oldest POST hangs', () => {
    const { endpoints, round, post, pass } = create()
    for (let count = 0; count < 6; count++) round(QUICK)
    const [hanging] = [post(), post(), post()]
    pass(1_001)
    expect(endpoints.limit('w')).to.equal(2)
    expect(endpoints.hasFreeSlot('w')).to.equal(false)
    expect(endpoints.limit('v')).to.equal(1)
    hanging.release(null)
    pass(-100)
    expect(endpoints.limit('w')).to.equal(50)
  })

  it('does not count an endpoint as hanging while it answers other POSTs', () => {
    const { endpoints, round, post, pass } = create()
    for (let count = 0; count < 6; count++) round(QUICK)
    post()
    for (let count = 0; count < 10; count++) {
      pass(900)
      expect(endpoints.limit('w')).to.equal(50)
      post().release(QUICK)
    }
    pass(1_001)
    expect(endpoints.limit('w')).to.equal(2)
  })

  it('does not count an endpoint as hanging whose successes take as long', () => {
    const { endpoints, round, post, pass } = create()
    round(SLOW)
    round(SLOW)
    post()
    pass(14_000)
    expect(endpoints.limit('w')).to.equal(8)
    pass(2_000)
    expect(endpoints.limit('w')).to.equal(2)
  })

  it('counts no slot as hanging before its POST starts', () => {
    const { endpoints, acquire, pass } = create({ initialLimit: 5 })
    acquire()
    pass(10_000)
    expect(endpoints.limit('w')).to.equal(5)
  })

  it('limits each endpoint independently', () => {
    const { endpoints, post } = create({ maxLimit: 1 })
    post('hangs')
    expect([endpoints.hasFreeSlot('hangs'), endpoints.hasFreeSlot('other')]).to.deep.equal([false, true])
  })

  it('grows with the successes of other processes', () => {
    const { endpoints } = create()
    for (let count = 0; count < 3; count++) endpoints.succeededElsewhere('w')
    expect(endpoints.limit('w')).to.equal(4)
    expect(endpoints.hasAnswered('w')).to.equal(true)
  })

  it('frees a slot only once, even when it is released twice', () => {
    const { endpoints, post } = create({ maxLimit: 2, initialLimit: 2 })
    const [one] = [post(), post()]
    one.release(null)
    one.release(null)
    expect(isSlot(endpoints.acquire('w', 'a'))).to.equal(true)
    expect(isSlot(endpoints.acquire('w', 'b'))).to.equal(false)
  })
})

describe('a delivery for an endpoint without a free slot', () => {
  it('is deferred for longer the more deliveries were deferred before it, up to 40 seconds, later five minutes, and 50 in a second', () => {
    const { endpoints, post } = create({ maxLimit: 2, initialLimit: 2 })
    post()
    post()
    const delays = Array.from({ length: 100_000 }, (_, index) => {
      const result = endpoints.acquire('w', `late-${index}`)
      return isSlot(result) ? Number.NaN : result.retryAfterMs
    })
    expect(delays).to.deep.equal([...delays].sort((a, b) => a - b))
    expect(delays[0]).to.equal(1_000)
    expect(delays[199]).to.equal(40_000)
    expect(delays[2_999]).to.equal(300_000)
    expect(delays.at(-1)).to.be.closeTo(100_000 * 20, 20)
  })

  it('is deferred by the duration of a POST, and by at least half a second', () => {
    const { endpoints, round, post, acquire } = create({ maxLimit: 2 })
    round(QUICK)
    post()
    post()
    expect(acquire()).to.deep.equal({ retryAfterMs: 500 })
    expect(endpoints.freeSlots('w')).to.equal(0)
  })

  it('counts as one deferred delivery when it returns too early', () => {
    const { endpoints, post } = create({ maxLimit: 1 })
    post()
    const first = endpoints.acquire('w', 'a')
    expect(endpoints.acquire('w', 'a')).to.deep.equal(first)
  })

  it('has priority for the next slots until it is twenty seconds late', () => {
    const { endpoints, post, acquire, pass } = create({ maxLimit: 2, initialLimit: 2 })
    const [one] = [post(), post()]
    acquire()
    one.release(QUICK)
    expect(endpoints.freeSlots('w')).to.equal(0)
    pass(21_001)
    expect(endpoints.freeSlots('w')).to.equal(1)
  })

  it('receives a slot that is released shortly, in order, and before new deliveries', async () => {
    const { endpoints, round, post } = create({ maxLimit: 2 })
    round(REFUSED)
    const [busy] = [post(), post()]
    const order: string[] = []
    const waiting = ['first', 'second'].map(async (id) => {
      const slot = await endpoints.acquireSoon('w', id)
      order.push(id)
      if (isSlot(slot)) slot.release(REFUSED)
    })
    busy.release(REFUSED)
    expect(endpoints.hasFreeSlot('w')).to.equal(false)
    await Promise.all(waiting)
    expect(order).to.deep.equal(['first', 'second'])
  })

  it('does not wait for a slot when that would take long', async () => {
    const { endpoints, round, post, pass } = create({ maxLimit: 2 })
    round(QUICK)
    post()
    post()
    pass(1_001)
    expect(isSlot(await endpoints.acquireSoon('w', 'a'))).to.equal(false)
  })
})

describe('a retry of a time-out', () => {
  const timedOut = (inMs: number): PostOutcome => ({ ...TIMED_OUT, retry: { deliveryId: 'a', inMs } })

  it('has a slot reserved until it starts', () => {
    const { endpoints, post } = create({ initialLimit: 2 })
    const other = post()
    post().release(timedOut(8_000))
    expect(endpoints.limit('w')).to.equal(1)
    other.release(null)
    expect(endpoints.freeSlots('w')).to.equal(0)
    const retry = endpoints.acquire('w', 'a')
    if (!isSlot(retry)) throw new Error('no slot is free')
    retry.release(null)
    expect(endpoints.freeSlots('w')).to.equal(1)
  })

  it('loses its reserved slot when it is twenty seconds late', () => {
    const { endpoints, post, pass } = create()
    post().release(timedOut(1_000))
    pass(20_999)
    expect(endpoints.freeSlots('w')).to.equal(0)
    pass(1)
    expect(endpoints.freeSlots('w')).to.equal(1)
  })

  it('loses it in time also where that of an earlier time-out is due later', () => {
    const { endpoints, post, pass } = create({ initialLimit: 8 })
    for (const inMs of [8_000, 1_000])
      post().release({ ...TIMED_OUT, retry: { deliveryId: `in ${inMs} ms`, inMs } })
    expect(endpoints.freeSlots('w')).to.equal(0)
    pass(21_000)
    expect(endpoints.freeSlots('w')).to.equal(1)
  })

  it('has no slot reserved when it is due in five minutes', () => {
    const { endpoints, post } = create()
    post().release(timedOut(300_000))
    expect(endpoints.freeSlots('w')).to.equal(1)
  })
})

describe('the health of an endpoint', () => {
  it('is fast before its first answer, and whatever it answers quickly', () => {
    const { endpoints, round, rounds } = create()
    expect(endpoints.health('w')).to.equal('fast')
    round(QUICK)
    rounds(50, REFUSED)
    expect(endpoints.health('w')).to.equal('fast')
  })

  it('is slow for a minute after a fault of ours, unless a quick answer follows', () => {
    const { endpoints, round, pass } = create()
    endpoints.noteFault('w')
    expect(endpoints.health('w')).to.equal('slow')
    round(QUICK)
    expect(endpoints.health('w')).to.equal('fast')
    endpoints.noteFault('w')
    pass(60_001)
    expect(endpoints.health('w')).to.equal('fast')
  })

  it('does not become slow because this process was paused', () => {
    const { endpoints, round, post, stall } = create()
    round(QUICK)
    const slot = post()
    stall(30_000)
    expect(endpoints.health('w')).to.equal('fast')
    slot.release(QUICK)
    expect(endpoints.health('w')).to.equal('fast')
  })

  it('does not become slow because of a POST that is repeated after its slot was freed', () => {
    const { endpoints, round, post, pass } = create()
    round(QUICK)
    const slot = post()
    slot.release(REFUSED)
    slot.begin()
    slot.release(QUICK)
    pass(60_000)
    expect(endpoints.health('w')).to.equal('fast')
  })

  it('stays slow for a minute after a slow answer unless a quick one follows, and while a POST hangs', () => {
    const { endpoints, round, post, pass } = create()
    round(SLOW)
    expect(endpoints.health('w')).to.equal('slow')
    round(QUICK)
    expect(endpoints.health('w')).to.equal('fast')
    round(SLOW)
    pass(60_001)
    expect(endpoints.health('w')).to.equal('fast')
    post()
    pass(15_001)
    expect(endpoints.health('w')).to.equal('slow')
  })

  it('stays slow for a minute after a time-out unless a quick answer follows', () => {
    const { endpoints, round, pass } = create()
    round(TIMED_OUT)
    expect(endpoints.health('w')).to.equal('slow')
    round(SLOW)
    expect(endpoints.health('w')).to.equal('slow')
    round(TIMED_OUT)
    pass(60_001)
    expect(endpoints.health('w')).to.equal('fast')
  })

  it('keeps endpoints with a POST in flight, however many others follow', () => {
    const { endpoints, post } = create({ maxLimit: 1 })
    post('hangs')
    for (let index = 0; index < 10_100; index++) post(`w${index}`).release(QUICK)
    expect(endpoints.hasFreeSlot('hangs')).to.equal(false)
  })
})

import { mock } from 'node:test'
import { expect } from 'chai'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { ProblemError } from '../../../../src/problem-error.ts'
import { createRateLimits, type RateLimitSettings } from '../../../../src/http/limits/rate-limits.ts'
import { createMetrics } from '../../../../src/observability/metrics.ts'

const NONE: RateLimitSettings = { management: 0, publish: 0, authFailures: 0, open: 0 }
const observers = { metrics: createMetrics() }

describe('the rate limits', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_700_000_000_000 }))
  afterEach(() => mock.timers.reset())

  /** The limits with the library's own memory, which can be looked into. */
  function createLimits(settings: Partial<RateLimitSettings>) {
    const counters: RateLimiterMemory[] = []
    const limits = createRateLimits({ ...NONE, ...settings }, observers, (options) => {
      const counter = new RateLimiterMemory(options)
      counters.push(counter)
      return counter
    })
    const kept = () => counters.reduce((sum, counter) => sum + counter.dump().storage.length, 0)
    return { limits, counters, kept }
  }

  it('are null without a limit, so that nothing is counted, except the time of payloads', () => {
    const { limits, counters } = createLimits({})
    const { validation, ...configured } = limits
    expect(configured).to.deep.equal({ management: null, publish: null, authentication: null, open: null })
    expect([validation === null, counters.length]).to.deep.equal([false, 1])
  })

  it('allow a thousand requests in one instant, and a thousand more ten seconds later', async () => {
    const { management } = createLimits({ management: 1_000 }).limits
    for (let left = 999; left >= 0; left -= 1)
      expect(await management!.count('key')).to.include({ ratelimit: `"management";r=${left};t=10` })
    const { headers } = await refusal(management!.count('key'))
    expect(headers).to.deep.equal({
      'ratelimit-policy': '"management";q=1000;w=10',
      ratelimit: '"management";r=0;t=10',
      'retry-after': '10',
    })
    mock.timers.tick(9_999)
    expect((await refusal(management!.count('key'))).headers).to.include({ 'retry-after': '1' })
    mock.timers.tick(1)
    expect(await management!.count('key')).to.include({ ratelimit: '"management";r=999;t=10' })
  })

  it('do not prolong the wait of a client that retries too early', async () => {
    const { publish } = createLimits({ publish: 1 }).limits
    await publish!.count('key')
    for (let second = 0; second < 10; second += 1) {
      expect((await refusal(publish!.count('key'))).headers).to.include({
        'retry-after': String(10 - second),
      })
      mock.timers.tick(1_000)
    }
    expect(await publish!.count('key')).to.include({ 'ratelimit-policy': '"publish";q=1;w=10' })
  })

  it("free a key's memory when its window ends", async () => {
    const { limits, kept } = createLimits({ management: 1, publish: 1 })
    for (let key = 0; key < 1_000; key += 1) {
      await limits.management!.count(`key-${key}`)
      await limits.publish!.count(`key-${key}`)
    }
    expect(kept()).to.equal(2_000)
    mock.timers.tick(10_000)
    expect(kept()).to.equal(0)
  })

  it('report an address over its limit without counting', async () => {
    const { authentication } = createLimits({ authFailures: 2 }).limits
    for (let time = 0; time < 5; time += 1) await authentication!.check('203.0.113.1')
    for (let time = 0; time < 2; time += 1) await authentication!.count('203.0.113.1')
    const { headers } = await refusal(authentication!.check('203.0.113.1'))
    expect(headers).to.include({ ratelimit: '"authentication";r=0;t=60', 'retry-after': '60' })
    // Another, unless it shares the count of the first, once in 65,536 times.
    await authentication!.check('203.0.113.2').catch(() => authentication!.check('203.0.113.3'))
    mock.timers.tick(60_000)
    await authentication!.check('203.0.113.1')
  })

  it('bound the memory of a flood of addresses, and free it a minute later', async () => {
    const { limits, kept } = createLimits({ authFailures: 1_000 })
    for (let n = 0; n < 100_000; n += 1)
      await limits.authentication!.count(`2001:db8:${n >> 8}:${n & 255}::1`)
    // More addresses than the 65,536 slots, of which some are taken twice.
    expect(kept()).to.be.within(50_000, 65_536)
    mock.timers.tick(60_000)
    expect(kept()).to.equal(0)
  })
})

async function refusal(counted: Promise<unknown>): Promise<ProblemError> {
  const error = await counted.then(
    () => null,
    (reason: unknown) => reason,
  )
  if (!(error instanceof ProblemError)) throw new Error('was not refused', { cause: error })
  expect(error.problem).to.include({ status: 429, code: 'rate_limited' })
  return error
}

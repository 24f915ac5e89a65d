import { expect } from 'chai'
import { DatabaseUnavailableError } from '../../../src/db/connection-errors.ts'
import { createKeyedLimiter } from '../../../src/incidents/keyed-limiter.ts'
import { createSemaphore } from '../../../src/incidents/semaphore.ts'
import { useMockTime } from '../../helpers/use-mock-time.ts'

/** Work that goes on until it is told to end. */
function createWork(): { run: () => Promise<void>; end: () => void; begun: () => number } {
  let begun = 0
  let end: () => void = () => undefined
  const ended = new Promise<void>((resolve) => (end = resolve))
  return {
    run: () => {
      begun++
      return ended
    },
    end: () => end(),
    begun: () => begun,
  }
}

describe('createKeyedLimiter', () => {
  const time = useMockTime()

  it('has so much work of one key under way, and work of other keys beside it', async () => {
    const limiter = createKeyedLimiter({ perKey: 2, total: createSemaphore(10), maxWaitMs: null })
    const [one, other] = [createWork(), createWork()]
    const all = [
      ...Array.from({ length: 5 }, () => limiter.take('one', one.run)),
      limiter.take('other', other.run),
    ]
    await new Promise(setImmediate)
    expect([one.begun(), other.begun()]).to.deep.equal([2, 1])
    one.end()
    other.end()
    await Promise.all(all)
    expect(one.begun()).to.equal(5)
  })

  it('has no more work under way than the total allows, whatever the keys', async () => {
    const limiter = createKeyedLimiter({ perKey: 1, total: createSemaphore(3), maxWaitMs: null })
    const work = createWork()
    const all = Array.from({ length: 9 }, (_, key) => limiter.take(String(key), work.run))
    await new Promise(setImmediate)
    expect(work.begun()).to.equal(3)
    work.end()
    await Promise.all(all)
    expect(work.begun()).to.equal(9)
  })

  it('has what waits for its key take no place of others', async () => {
    const limiter = createKeyedLimiter({ perKey: 1, total: createSemaphore(2), maxWaitMs: null })
    const [one, other] = [createWork(), createWork()]
    const all = [
      ...Array.from({ length: 5 }, () => limiter.take('one', one.run)),
      limiter.take('other', other.run),
    ]
    await new Promise(setImmediate)
    expect([one.begun(), other.begun()]).to.deep.equal([1, 1])
    one.end()
    other.end()
    await Promise.all(all)
  })

  it('refuses work that could not begin in time, and never begins it', async () => {
    const limiter = createKeyedLimiter({ perKey: 1, total: createSemaphore(1), maxWaitMs: 20 })
    const [first, second, third] = [createWork(), createWork(), createWork()]
    const under = limiter.take('one', first.run)
    const refused = await time.until(
      Promise.allSettled([limiter.take('one', second.run), limiter.take('two', second.run)]),
    )
    expect(refused.map((one) => one.status === 'rejected' && (one.reason as unknown))).to.satisfy(
      (reasons: unknown[]) => reasons.every((reason) => reason instanceof DatabaseUnavailableError),
    )
    first.end()
    await under
    third.end()
    await limiter.take('one', third.run)
    expect([second.begun(), third.begun()]).to.deep.equal([0, 1])
  })

  it('gives its place back when work fails', async () => {
    const limiter = createKeyedLimiter({ perKey: 1, total: createSemaphore(1), maxWaitMs: 1_000 })
    const failed = await Promise.allSettled([limiter.take('one', () => Promise.reject(new Error('no')))])
    expect(failed[0].status).to.equal('rejected')
    expect(await limiter.take('one', () => Promise.resolve('yes'))).to.equal('yes')
  })
})

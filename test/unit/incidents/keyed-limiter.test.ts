import { expect } from 'chai'
import { DatabaseUnavailableError } from '../../../src/db/connection-errors.ts'
import { createKeyedLimiter } from '../../../src/incidents/keyed-limiter.ts'
import { useMockTime } from '../../helpers/use-mock-time.ts'

/** Work that goes on until `end` is called. */
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

  it('runs work of one key one after the other, and work of other keys at the same time', async () => {
    const limit = createKeyedLimiter({ total: 10, timeoutMs: 1_000 })
    const [one, other] = [createWork(), createWork()]
    const all = [...Array.from({ length: 5 }, () => limit('one', one.run)), limit('other', other.run)]
    await new Promise(setImmediate)
    expect([one.begun(), other.begun()]).to.deep.equal([1, 1])
    one.end()
    other.end()
    await Promise.all(all)
    expect(one.begun()).to.equal(5)
  })

  it('runs no more work than the total allows, whatever the keys', async () => {
    const limit = createKeyedLimiter({ total: 3, timeoutMs: 1_000 })
    const work = createWork()
    const all = Array.from({ length: 9 }, (_, key) => limit(String(key), work.run))
    await new Promise(setImmediate)
    expect(work.begun()).to.equal(3)
    work.end()
    await Promise.all(all)
    expect(work.begun()).to.equal(9)
  })

  it('does not count work that waits for its key towards the total', async () => {
    const limit = createKeyedLimiter({ total: 2, timeoutMs: 1_000 })
    const [one, other] = [createWork(), createWork()]
    const all = [...Array.from({ length: 5 }, () => limit('one', one.run)), limit('other', other.run)]
    await new Promise(setImmediate)
    expect([one.begun(), other.begun()]).to.deep.equal([1, 1])
    one.end()
    other.end()
    await Promise.all(all)
  })

  it('refuses work that could not begin in time, and never begins it', async () => {
    const limit = createKeyedLimiter({ total: 1, timeoutMs: 20 })
    const [first, second, third] = [createWork(), createWork(), createWork()]
    const running = limit('one', first.run)
    const refused = await time.until(Promise.allSettled([limit('one', second.run), limit('two', second.run)]))
    expect(refused.map((one) => one.status === 'rejected' && (one.reason as unknown))).to.satisfy(
      (reasons: unknown[]) => reasons.every((reason) => reason instanceof DatabaseUnavailableError),
    )
    first.end()
    await running
    third.end()
    await limit('one', third.run)
    expect([second.begun(), third.begun()]).to.deep.equal([0, 1])
  })

  it('runs the next work when work fails', async () => {
    const limit = createKeyedLimiter({ total: 1, timeoutMs: 1_000 })
    const failed = await Promise.allSettled([limit('one', () => Promise.reject(new Error('no')))])
    expect(failed[0].status).to.equal('rejected')
    expect(await limit('one', () => Promise.resolve('yes'))).to.equal('yes')
  })
})

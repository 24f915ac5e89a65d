import { expect } from 'chai'
import { DatabaseBusyError } from '../../../../src/db/connection/connection-errors.ts'
import { createFairLimiter } from '../../../../src/db/connection/database-queues.ts'
import { useMockTime } from '../../../helpers/use-mock-time.ts'

describe('createFairLimiter', () => {
  const time = useMockTime()

  /** Runs pieces of work that are noted when they begin and end on request. */
  function createWork(options: Partial<Parameters<typeof createFairLimiter>[0]> = {}) {
    const limits = { concurrency: 2, perKey: 1, startTimeoutMs: 50, timeoutMs: 200, maxQueued: 10 }
    const limit = createFairLimiter({ ...limits, ...options })
    const begun: string[] = []
    const ending = new Map<string, () => void>()
    const run = (name: string): Promise<string> =>
      limit(name.slice(0, 1), () => {
        begun.push(name)
        return new Promise((resolve) => ending.set(name, () => resolve(name)))
      })
    const end = async (name: string): Promise<void> => {
      ending.get(name)!()
      await new Promise(setImmediate)
    }
    return { begun, run, end }
  }
  const isBegun = (error: unknown): unknown => error instanceof DatabaseBusyError && error.isBegun

  it('runs no more work of a key than perKey, so that others have a place', async () => {
    const { begun, run, end } = createWork()
    const all = ['a1', 'a2', 'a3', 'b1'].map(run)
    expect(begun).to.deep.equal(['a1', 'b1'])
    await end('b1')
    expect(begun).to.deep.equal(['a1', 'b1'])
    for (const name of ['a1', 'a2', 'a3']) await end(name)
    expect(await Promise.all(all)).to.deep.equal(['a1', 'a2', 'a3', 'b1'])
  })

  it('serves the keys in turn', async () => {
    const { begun, run, end } = createWork({ concurrency: 1 })
    const all = ['a1', 'a2', 'a3', 'b1', 'c1'].map(run)
    for (const name of ['a1', 'a2', 'b1', 'c1', 'a3']) await end(name)
    await Promise.all(all)
    expect(begun).to.deep.equal(['a1', 'a2', 'b1', 'c1', 'a3'])
  })

  it('frees the place of work that fails', async () => {
    const limit = createFairLimiter({
      concurrency: 1,
      perKey: 1,
      startTimeoutMs: 50,
      timeoutMs: 200,
      maxQueued: 10,
    })
    const failed = new Error('failed')
    const first = limit('a', () => Promise.reject(failed)).catch((error: unknown) => error)
    expect(await limit('a', () => Promise.resolve('second'))).to.equal('second')
    expect(await first).to.equal(failed)
  })

  it('refuses work that had no turn in time and never begins it, and abandons what has no result', async () => {
    const { begun, run, end } = createWork({ concurrency: 1 })
    const errors = ['a1', 'a2'].map((name) => run(name).catch((error: unknown) => isBegun(error)))
    expect(await time.until(Promise.all(errors))).to.deep.equal([true, false])
    await end('a1')
    expect(begun).to.deep.equal(['a1'])
    const last = run('a3')
    await end('a3')
    expect(await last).to.equal('a3')
  })

  it('bounds the work that waits', async () => {
    const { run, end } = createWork({ maxQueued: 1 })
    const [first, second, third] = ['a1', 'a2', 'a3'].map(run)
    expect(await third!.catch(isBegun)).to.equal(false)
    await end('a1')
    await end('a2')
    expect(await Promise.all([first, second])).to.deep.equal(['a1', 'a2'])
  })
})

import { syncBuiltinESMExports } from 'node:module'
import { mock } from 'node:test'

/** `until` gives up after so much time of the test, so that a promise that never settles fails it. */
const MAX_WAIT_MS = 120_000

/** Time that advances only when the test lets it. */
export type MockTime = {
  /** Lets so many milliseconds pass one by one, and runs what each of them wakes. */
  pass: (ms: number) => Promise<void>
  /** Lets time pass until the promise is settled, and returns what it brings. */
  until: <T>(promise: Promise<T>) => Promise<T>
}

/**
 * Replaces timers, `Date` and `performance.now()` for each test of the `describe` it is called in. Only for code that
 * waits for nothing else: no files, sockets or processes.
 */
export function useMockTime(): MockTime {
  let restore: () => void = () => undefined
  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'], now: 1_700_000_000_000 })
    const now = mock.method(performance, 'now', () => Date.now())
    // Modules that import `setTimeout` by its name see the replacement too.
    syncBuiltinESMExports()
    restore = () => {
      now.mock.restore()
      mock.timers.reset()
      syncBuiltinESMExports()
    }
  })
  afterEach(() => restore())

  const passOne = async (): Promise<void> => {
    mock.timers.tick(1)
    await new Promise(setImmediate)
  }
  return {
    async pass(ms) {
      for (let passed = 0; passed < ms; passed++) await passOne()
    },
    async until(promise) {
      const seen = { isSettled: false }
      const settle = (): void => void (seen.isSettled = true)
      promise.then(settle, settle)
      await new Promise(setImmediate)
      for (let passed = 0; !seen.isSettled; passed++) {
        if (passed === MAX_WAIT_MS) throw new Error(`not settled after ${MAX_WAIT_MS} ms`)
        await passOne()
      }
      return promise
    },
  }
}

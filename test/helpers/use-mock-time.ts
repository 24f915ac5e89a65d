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

/** Turns of the event loop in which a promise settles that was waiting for a time-out and for its socket to close. */
const TURNS = 50

const UNTIL_MS = 60_000

/** `setTimeout` that fires only when the test lets it; sockets and their own time-outs go on. */
export type HeldTimeouts = {
  /** Lets so many milliseconds pass for `setTimeout`, and everything that follows at once happen. */
  pass: (ms: number) => Promise<void>
  /** Returns once `isTrue` is, by what arrives over sockets. */
  until: (isTrue: () => boolean) => Promise<void>
}

/** Replaces the global `setTimeout` for each test of the `describe` it is called in: for limits behind real sockets. */
export function useHeldTimeouts(): HeldTimeouts {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }))
  afterEach(() => mock.timers.reset())
  const nextEvents = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
  return {
    async pass(ms) {
      mock.timers.tick(ms)
      for (let turn = 0; turn < TURNS; turn++) await nextEvents()
    },
    async until(isTrue) {
      const deadlineMs = performance.now() + UNTIL_MS
      while (!isTrue()) {
        if (performance.now() > deadlineMs) throw new Error('what the test waits for has not arrived')
        await nextEvents()
      }
    },
  }
}

import { mock } from 'node:test'

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

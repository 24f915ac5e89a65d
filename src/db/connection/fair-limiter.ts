import { createRoundRobinQueue } from '../../round-robin-queue.ts'
import { refuse, withDeadline } from './batched-statement.ts'

/** Runs `work` when it is the turn of `key`. */
export type FairLimiter = <Result>(key: string, work: () => Promise<Result>) => Promise<Result>

/**
 * Runs `concurrency` pieces of work at once, `perKey` of one key; the next one is of the key that was served longest ago.
 * Rejects with DatabaseBusyError when the work has not begun within `startTimeoutMs` or `maxQueued` wait already (it is
 * never begun then), and when it gives no result within `timeoutMs` (it goes on, and holds its place).
 */
export function createFairLimiter(options: {
  concurrency: number
  perKey: number
  startTimeoutMs: number
  timeoutMs: number
  maxQueued: number
}): FairLimiter {
  const { concurrency, perKey, maxQueued } = options
  const inFlight = new Map<string, number>()
  const countOf = (key: string): number => inFlight.get(key) ?? 0

  const queue = createRoundRobinQueue<{ key: string; run: () => Promise<void> }>({
    concurrency,
    hasRoom: (key) => countOf(key) < perKey,
    async run({ key, run }) {
      inFlight.set(key, countOf(key) + 1)
      await run()
      if (countOf(key) === 1) inFlight.delete(key)
      else inFlight.set(key, countOf(key) - 1)
      queue.wake(key)
    },
  })

  return <Result>(key: string, work: () => Promise<Result>) => {
    if (queue.size() >= maxQueued) return refuse(queue.size())
    return withDeadline<Result>(options, ({ begin, resolve, reject }) => {
      const run = async (): Promise<void> => {
        if (begin()) await work().then(resolve, reject)
      }
      queue.add(key, { key, run })
    })
  }
}

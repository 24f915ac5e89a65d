import pLimit, { type LimitFunction } from 'p-limit'
import { DatabaseUnavailableError } from '../db/connection-errors.ts'

/** Runs `work` when no other work of `key` is running, in order. */
export type KeyedLimiter = <T>(key: string, work: () => Promise<T>) => Promise<T>

/**
 * Runs one piece of work per key at a time, and `total` of all keys. Work that waits for its key does not count towards
 * the total. Rejects with DatabaseUnavailableError, and never runs the work, if it has not begun within `timeoutMs`.
 */
export function createKeyedLimiter(options: { total: number; timeoutMs: number }): KeyedLimiter {
  const total = pLimit(options.total)
  const keys = new Map<string, LimitFunction>()

  function run(key: string, work: () => Promise<void>): Promise<void> {
    const limit = keys.get(key) ?? pLimit(1)
    keys.set(key, limit)
    return limit(async () => {
      try {
        await total(work)
      } finally {
        if (limit.pendingCount === 0) keys.delete(key)
      }
    })
  }

  return (key, work) =>
    new Promise((resolve, reject) => {
      let hasTimedOut = false
      const onTimeout = (): void => {
        hasTimedOut = true
        reject(new DatabaseUnavailableError('too many transactions of one webhook wait for the database'))
      }
      const timer = setTimeout(onTimeout, options.timeoutMs)
      run(key, async () => {
        clearTimeout(timer)
        if (!hasTimedOut) resolve(await work())
      }).catch(reject)
    })
}

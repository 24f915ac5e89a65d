import { DatabaseUnavailableError } from '../db/connection-errors.ts'
import { createSemaphore, type Semaphore } from './semaphore.ts'

/** Limits how much work of one webhook is under way at a time in this process; the rest waits, in order. */
export type KeyedLimiter = {
  /** Throws DatabaseUnavailableError, and does not begin, where the work cannot begin in time. */
  take<T>(key: string, work: () => Promise<T>): Promise<T>
}

/**
 * `perKey` of one key, and of all keys together what `total` allows, which others may share. Who waits for others of
 * its key takes no place of the total. `maxWaitMs` is null for as long as it takes.
 */
export function createKeyedLimiter(options: {
  perKey: number
  total: Semaphore
  maxWaitMs: number | null
}): KeyedLimiter {
  const { perKey, total, maxWaitMs } = options
  const keys = new Map<string, { semaphore: Semaphore; users: number }>()

  async function withTotal<T>(untilMs: number | null, work: () => Promise<T>): Promise<T> {
    if (!(await total.acquire(untilMs))) throw tooLate()
    try {
      return await work()
    } finally {
      total.release()
    }
  }

  return {
    async take(key, work) {
      const untilMs = maxWaitMs === null ? null : performance.now() + maxWaitMs
      const entry = keys.get(key) ?? { semaphore: createSemaphore(perKey), users: 0 }
      keys.set(key, entry)
      entry.users++
      try {
        if (!(await entry.semaphore.acquire(untilMs))) throw tooLate()
        try {
          return await withTotal(untilMs, work)
        } finally {
          entry.semaphore.release()
        }
      } finally {
        entry.users--
        if (entry.users === 0) keys.delete(key)
      }
    },
  }
}

function tooLate(): DatabaseUnavailableError {
  return new DatabaseUnavailableError('too much of the same webhook waits for the database')
}

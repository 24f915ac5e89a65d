import { setTimeout as delay } from 'node:timers/promises'
import { isDatabaseAway } from './connection-errors.ts'

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 2_000

/**
 * Runs a database call again and again while the database is away, with growing pauses.
 * Any other error is thrown at once. Rejects when `signal` aborts during a pause.
 */
export async function untilDatabaseAnswers<T>(call: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    try {
      return await call()
    } catch (error) {
      if (!isDatabaseAway(error)) throw error
      await delay(pauseMs, undefined, signal === undefined ? {} : { signal })
    }
  }
}

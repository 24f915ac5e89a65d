import { setTimeout as delay } from 'node:timers/promises'
import { isDatabaseUnavailable, WebhookLockedError } from './connection-errors.ts'

const INITIAL_DELAY_MS = 100
const MAX_DELAY_MS = 2_000

/**
 * Runs a database call again and again while the database is away, with growing pauses.
 * Any other error is thrown at once; so is that of a locked webhook, which may last: an activity is repeated by Temporal,
 * and gives its slot to others meanwhile. Rejects when `signal` aborts during a pause.
 */
export async function retryWhileUnavailable<T>(call: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  for (let pauseMs = INITIAL_DELAY_MS; ; pauseMs = Math.min(pauseMs * 2, MAX_DELAY_MS)) {
    try {
      return await call()
    } catch (error) {
      if (!isDatabaseUnavailable(error) || error instanceof WebhookLockedError) throw error
      await delay(pauseMs, undefined, signal === undefined ? {} : { signal })
    }
  }
}

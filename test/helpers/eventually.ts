import { setTimeout as delay } from 'node:timers/promises'

const POLL_MS = 20

/** Far more than anything takes on a busy machine. What is promised within a time is given that time. */
const TIMEOUT_MS = 60_000

/**
 * Calls `check` until it no longer throws, and returns what it returned; after `timeoutMs` its last error is thrown.
 */
export async function eventually<T>(check: () => T | Promise<T>, timeoutMs = TIMEOUT_MS): Promise<T> {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    const isLast = Date.now() > deadline
    // After a pause of this process timers are first: what has arrived meanwhile is read before the last check.
    if (isLast) await delay(POLL_MS)
    try {
      return await check()
    } catch (error) {
      if (isLast) throw error
    }
    await delay(POLL_MS)
  }
}

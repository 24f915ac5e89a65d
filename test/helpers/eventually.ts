import { setTimeout as delay } from 'node:timers/promises'

const POLL_MS = 20

/**
 * Calls `check` until it no longer throws, and returns what it returned; after `timeoutMs` its last error is thrown.
 */
export async function eventually<T>(check: () => T | Promise<T>, timeoutMs = 30_000): Promise<T> {
  const deadline = Date.now() + timeoutMs
  for (;;) {
    try {
      return await check()
    } catch (error) {
      if (Date.now() > deadline) throw error
    }
    await delay(POLL_MS)
  }
}

import { setTimeout as delay } from 'node:timers/promises'
import type { DatabaseClock } from '../../db/connection/database-clock.ts'

/**
 * Waits until `dueAtMs` of the database's clock, as far as this process knows it, for `maxWaitMs` at most. Timers may
 * fire a fraction early, so the clock is read again. Rejects when `signal` aborts.
 */
export async function waitUntilDue(
  clock: DatabaseClock,
  { dueAtMs, maxWaitMs }: { dueAtMs: number; maxWaitMs: number },
  signal: AbortSignal,
): Promise<void> {
  const endsAtMs = performance.now() + maxWaitMs
  const remainingMs = (): number => Math.min(dueAtMs - clock.nowMs(), endsAtMs - performance.now())
  for (let leftMs = remainingMs(); leftMs > 0; leftMs = remainingMs()) {
    await delay(Math.ceil(leftMs), undefined, { signal })
  }
}

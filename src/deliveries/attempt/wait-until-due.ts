import { setTimeout as delay } from 'node:timers/promises'
import type { DatabaseClock } from '../../db/database-clock.ts'

/**
 * Returns at `untilMs` of the database's clock, never earlier as far as this process knows it, and after `atMostMs` at
 * the latest. Timers may fire a fraction early, so the clock has the last word. Rejects when `signal` aborts.
 */
export async function waitUntilDue(
  clock: DatabaseClock,
  hold: { untilMs: number; atMostMs: number },
  signal: AbortSignal,
): Promise<void> {
  const endsAtMs = performance.now() + hold.atMostMs
  const remainingMs = (): number => Math.min(hold.untilMs - clock.nowMs(), endsAtMs - performance.now())
  for (let leftMs = remainingMs(); leftMs > 0; leftMs = remainingMs()) {
    await delay(Math.ceil(leftMs), undefined, { signal })
  }
}

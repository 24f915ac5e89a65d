import { setTimeout as delay } from 'node:timers/promises'

/**
 * Returns at `untilMs` of this process's clock, never earlier, and after `atMostMs` at the latest.
 * Timers may fire a fraction early, so the clock has the last word. Rejects when `signal` aborts.
 */
export async function holdUntil(
  hold: { untilMs: number; atMostMs: number },
  signal: AbortSignal,
): Promise<void> {
  const untilMs = Math.min(hold.untilMs, Date.now() + hold.atMostMs)
  for (let leftMs = untilMs - Date.now(); leftMs > 0; leftMs = untilMs - Date.now()) {
    await delay(leftMs, undefined, { signal })
  }
}

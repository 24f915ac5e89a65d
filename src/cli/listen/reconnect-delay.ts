const MAX_DELAY_MS = 30_000
const MAX_RETRY_AFTER_MS = 300_000

/** Doublings after which the delay is at its maximum whatever the server names. */
const MAX_DOUBLINGS = 16

/**
 * Returns after how many ms the stream is opened again. The delay doubles with each failure in a row and is reduced by a random
 * part, so that many clients do not return at once; where the server names one, it is never shorter than that.
 * `random`: from 0 to 1.
 */
export function reconnectDelayMs(
  { retryMs, failures, retryAfterMs }: { retryMs: number; failures: number; retryAfterMs: number | null },
  random: number,
): number {
  if (retryAfterMs !== null) return Math.min(retryAfterMs, MAX_RETRY_AFTER_MS) * (1 + random / 4)
  const fullMs = Math.min(retryMs * 2 ** Math.min(failures, MAX_DOUBLINGS), MAX_DELAY_MS)
  return fullMs * (0.5 + random / 2)
}

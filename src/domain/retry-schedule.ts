const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** Wait before attempts 2 to 10 in ms, each measured from the end of the attempt before it (spec 8.1). */
export const RETRY_WAITS_MS: readonly number[] = [
  1 * SECOND,
  2 * SECOND,
  4 * SECOND,
  8 * SECOND,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  6 * HOUR,
  24 * HOUR,
]

/** Attempts of a delivery by the schedule (spec 8.2). Requested retries may add more. */
export const MAX_ATTEMPTS = RETRY_WAITS_MS.length + 1

/**
 * Wait in ms between the failed attempt `number` (1-based) and the next one on the schedule,
 * or null when attempt `number` was the last.
 */
export function waitAfterAttempt(number: number): number | null {
  return RETRY_WAITS_MS[number - 1] ?? null
}

/** Returns the name of an attempt in the Temporal UI: `attempt 6 of 10`; those beyond the schedule are requested retries. */
export function attemptName(number: number): string {
  return number <= MAX_ATTEMPTS
    ? `attempt ${number} of ${MAX_ATTEMPTS}`
    : `attempt ${number}, requested by a user`
}

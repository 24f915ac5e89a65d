import type { Standing } from '../../db/queries/claims.ts'
import type { AttemptOutcome } from '../../domain/attempt-outcome.ts'
import { waitAfterAttempt } from '../../domain/retry-schedule.ts'

/**
 * Returns the outcome on the rows when attempt `number` is not to be made: it is recorded, or the delivery is final or
 * deleted. Rows that are behind, of an older database that was restored, lead back to their own next attempt.
 */
export function outcomeOfRow(standing: Standing | null, number: number): AttemptOutcome {
  if (standing === null)
    return { state: 'stopped', attempts: number - 1, failureCode: null, statusCode: null }
  const { state, attempts, nextAttemptAt, dueInMs, nowMs, recorded } = standing
  const codes = { failureCode: recorded?.failureCode ?? null, statusCode: recorded?.statusCode ?? null }
  switch (state) {
    case 'completed':
    case 'failed':
    case 'stopped':
      return { state, attempts, ...codes }
    case 'waiting':
    case 'pending':
    case 'in_progress': {
      const waitMs = waitAfterAttempt(attempts) ?? 0
      return {
        state: 'waiting',
        attempts,
        endedAtMs: (nextAttemptAt?.getTime() ?? nowMs) - waitMs,
        sinceEndMs: Math.max(0, waitMs - dueInMs),
        immediately: standing.retryRequested,
        ...codes,
      }
    }
  }
}

import type { Standing } from '../../db/queries/attempts.ts'
import type { AttemptOutcome } from '../../domain/attempt-outcome.ts'
import { waitAfterAttempt } from '../../domain/retry-schedule.ts'

/** True when attempt `number` is the next one to be made: a claim that failed a moment ago came too early, or lost. */
export function isNext(standing: Standing, number: number): boolean {
  return standing.attempts === number - 1 && ['pending', 'waiting', 'in_progress'].includes(standing.state)
}

/**
 * What the rows say when attempt `number` is not to be made: it is recorded already, or the delivery is final or gone.
 * Where the rows are behind (an older database was restored) they are believed: the outcome leads back to their own
 * next attempt.
 */
export function recordedOutcome(standing: Standing | null, number: number): AttemptOutcome {
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
        immediately: standing.asked,
        ...codes,
      }
    }
  }
}

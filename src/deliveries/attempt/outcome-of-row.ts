import type { Standing } from '../../db/queries/standing.ts'
import type { AttemptOutcome } from '../../domain/attempt-outcome.ts'

/**
 * Returns the outcome on the rows when attempt `number` is not to be made: it is recorded or not due, or the delivery is
 * final or deleted. Rows that are behind, of an older database that was restored, lead back to their own next attempt.
 */
export function outcomeOfRow(standing: Standing | null, number: number): AttemptOutcome {
  if (standing === null)
    return { state: 'stopped', attempts: number - 1, failureCode: null, statusCode: null }
  const { state, attempts, dueAt, dueInMs, nowMs, recorded } = standing
  const codes = { failureCode: recorded?.failureCode ?? null, statusCode: recorded?.statusCode ?? null }
  switch (state) {
    case 'completed':
    case 'failed':
    case 'stopped':
      return { state, attempts, ...codes }
    case 'waiting':
    case 'pending':
    case 'in_progress':
      return {
        state: 'waiting',
        attempts,
        dueAtMs: dueAt?.getTime() ?? nowMs,
        dueInMs: Math.max(0, dueInMs),
        ...codes,
      }
  }
}

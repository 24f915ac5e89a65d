import type { Standing } from '../db/queries/attempts.ts'
import type { AttemptOutcome } from '../domain/attempt-outcome.ts'
import { waitAfterAttempt } from '../domain/retry-schedule.ts'

/**
 * What the rows say when attempt `number` is not to be made (any more): it is recorded, or the delivery is final or gone.
 * Throws when `number` is not its turn at all, which would be a fault of ours.
 */
export function standingOutcome(standing: Standing | null, number: number): AttemptOutcome {
  if (standing === null)
    return { state: 'stopped', attempts: number - 1, failureCode: null, statusCode: null }
  const { state, attempts, nextAttemptAt, recorded } = standing
  const codes = { failureCode: recorded?.failureCode ?? null, statusCode: recorded?.statusCode ?? null }
  switch (state) {
    case 'completed':
    case 'failed':
    case 'stopped':
      return { state, attempts, ...codes }
    case 'waiting':
      if (attempts < number || nextAttemptAt === null) break
      return {
        state,
        attempts,
        endedAtMs: nextAttemptAt.getTime() - (waitAfterAttempt(attempts) ?? 0),
        ...codes,
      }
    case 'pending':
    case 'in_progress':
      break
  }
  throw new Error(`attempt ${number} is not the next one of a delivery with ${attempts} attempts (${state})`)
}

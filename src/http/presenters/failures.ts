import type { Static } from 'typebox'
import type { FailuresRow } from '../../db/queries/failures.ts'
import { FAILURE_TEXTS } from '../../domain/failure-texts.ts'
import type { FailuresSchema } from '../schemas/failures.ts'

/** Adds to each cause what to do about it. */
export function presentFailures(failures: FailuresRow): Static<typeof FailuresSchema> {
  const { failedAttempts, deliveries, isCapped, causes } = failures
  return { failedAttempts, deliveries, isCapped, causes: causes.map(presentCause) }
}

function presentCause(cause: FailuresRow['causes'][number]) {
  const { failureCode, statusCode, error, failedAttempts, deliveries, firstAt, lastAt } = cause
  return {
    failureCode,
    statusCode,
    error,
    cure: FAILURE_TEXTS[failureCode].cure,
    failedAttempts,
    deliveries,
    firstAt: firstAt.toISOString(),
    lastAt: lastAt.toISOString(),
  }
}

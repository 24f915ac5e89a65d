import type { AttemptDependencies, AttemptRequest } from '../src/delivery/attempt-request.ts'
import { createAttempt } from '../src/delivery/attempt.ts'
import type { AttemptOutcome } from '../src/domain/attempt-outcome.ts'
import { withHeartbeat } from './with-heartbeat.ts'

/**
 * Running twice is harmless: an attempt is known by (delivery, number), and where its record exists nothing is posted.
 */
export function createMakeAttempt(
  dependencies: AttemptDependencies,
): (request: AttemptRequest) => Promise<AttemptOutcome> {
  const makeAttempt = createAttempt(dependencies)
  return (request) => withHeartbeat((signals) => makeAttempt(request, signals))
}

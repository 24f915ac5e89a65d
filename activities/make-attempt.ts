import { activityInfo, cancellationSignal, heartbeat } from '@temporalio/activity'
import { createAttempt, type AttemptDependencies, type AttemptRequest } from '../src/delivery/attempt.ts'
import type { AttemptOutcome } from '../src/domain/attempt-outcome.ts'

/** Heartbeats come several times within the time-out after which the engine calls this worker lost. */
const HEARTBEATS_PER_TIMEOUT = 4

/**
 * Running twice is harmless: an attempt is known by (delivery, number), and where its record exists nothing is posted.
 */
export function createMakeAttempt(
  dependencies: AttemptDependencies,
): (request: AttemptRequest) => Promise<AttemptOutcome> {
  const makeAttempt = createAttempt(dependencies)
  return async (request) => {
    const timeoutMs = activityInfo().heartbeatTimeoutMs ?? 10_000
    const beat = setInterval(() => heartbeat(), timeoutMs / HEARTBEATS_PER_TIMEOUT)
    try {
      return await makeAttempt(request, cancellationSignal())
    } finally {
      clearInterval(beat)
    }
  }
}

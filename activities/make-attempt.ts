import { ApplicationFailure } from '@temporalio/activity'
import type { AttemptDependencies } from '../src/deliveries/attempt/attempt-request.ts'
import { createAttempt } from '../src/deliveries/attempt/make-attempt.ts'
import type { AttemptOutcome } from '../src/domain/attempt-outcome.ts'
import type { AttemptRequest } from '../src/domain/attempt-request.ts'
import { toAttemptRequest, withOldFields, type OldAttemptRequest } from '../src/domain/old-attempts.ts'
import { StoppingError, type Shutdown } from '../src/shutdown.ts'
import { withHeartbeat, type ActivitySignals } from './with-heartbeat.ts'

/** Another worker makes the attempt at once. */
const NEXT_RETRY_DELAY = '1 millisecond'

/**
 * Running twice is harmless: an attempt is identified by (delivery, number), and nothing is posted once it is recorded.
 * When this process stops, an attempt whose POST has not begun is left to another worker.
 */
export function createMakeAttempt(
  dependencies: AttemptDependencies & { shutdown: Pick<Shutdown, 'stopping'> },
): (request: AttemptRequest | OldAttemptRequest) => Promise<AttemptOutcome> {
  const makeAttempt = createAttempt(dependencies)
  const { stopping } = dependencies.shutdown
  return (request) =>
    withHeartbeat(async (signals) => {
      const either = abortWith(signals.cancelled, stopping)
      try {
        const wanted = toAttemptRequest(request)
        return withOldFields(await makeAttempt(wanted, { ...signals, cancelled: either.signal }))
      } catch (error) {
        if (!stopping.aborted || signals.cancelled.aborted || !isStop(error)) throw error
        throw ApplicationFailure.create({
          type: 'WorkerStopping',
          message: 'This worker is stopping; another one makes the attempt.',
          nextRetryDelay: NEXT_RETRY_DELAY,
        })
      } finally {
        either.release()
      }
    })
}

/** Returns a signal that aborts with either of two, until `release` detaches it from them. */
function abortWith(
  cancelled: ActivitySignals['cancelled'],
  stopping: AbortSignal,
): { signal: AbortSignal; release: () => void } {
  const either = new AbortController()
  const onCancelled = (): void => either.abort(cancelled.reason)
  const onStopping = (): void => either.abort(stopping.reason)
  cancelled.addEventListener('abort', onCancelled, { once: true })
  stopping.addEventListener('abort', onStopping, { once: true })
  if (cancelled.aborted) onCancelled()
  if (stopping.aborted) onStopping()
  return {
    signal: either.signal,
    release() {
      cancelled.removeEventListener('abort', onCancelled)
      stopping.removeEventListener('abort', onStopping)
    },
  }
}

/** Node wraps the reason of an aborted wait. */
function isStop(error: unknown): boolean {
  return error instanceof StoppingError || (error instanceof Error && error.cause instanceof StoppingError)
}

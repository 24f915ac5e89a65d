import { Context } from '@temporalio/activity'

/** Heartbeats come several times within the time-out after which the engine calls this worker lost. */
const HEARTBEATS_PER_TIMEOUT = 4

/**
 * `cancelled` aborts when the engine no longer wants the activity; `shutDown` only when this worker has to end and its
 * grace is over: then even a POST under way is cut off.
 */
export type ActivitySignals = { cancelled: AbortSignal; shutDown: AbortSignal }

/** Runs `work` while the engine is told that this worker lives. */
export async function withHeartbeat<T>(work: (signals: ActivitySignals) => Promise<T>): Promise<T> {
  // Taken here: a cancellation comes from outside the activity, where there is no current context.
  const context = Context.current()
  const timeoutMs = context.info.heartbeatTimeoutMs ?? 10_000
  const beat = setInterval(() => context.heartbeat(), timeoutMs / HEARTBEATS_PER_TIMEOUT)
  const cancelled = context.cancellationSignal
  const shutDown = new AbortController()
  const onCancelled = (): void => {
    if (context.cancellationDetails?.workerShutdown === true) shutDown.abort(cancelled.reason)
  }
  cancelled.addEventListener('abort', onCancelled)
  try {
    return await work({ cancelled, shutDown: shutDown.signal })
  } finally {
    clearInterval(beat)
    cancelled.removeEventListener('abort', onCancelled)
  }
}

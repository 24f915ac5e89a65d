import { Context } from '@temporalio/activity'

const HEARTBEATS_PER_TIMEOUT = 4

/**
 * `cancelled` aborts when the activity is cancelled; `shutDown` only when the grace of a stopping worker is over: then
 * even a POST in flight is cut off.
 */
export type ActivitySignals = { cancelled: AbortSignal; shutDown: AbortSignal }

/** Runs `work`, and sends heartbeats to Temporal meanwhile. */
export async function withHeartbeat<T>(work: (signals: ActivitySignals) => Promise<T>): Promise<T> {
  // Read here: the abort handler runs outside the activity, without a current context.
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

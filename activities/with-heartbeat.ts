import { activityInfo, cancellationSignal, heartbeat } from '@temporalio/activity'

/** Heartbeats come several times within the time-out after which the engine calls this worker lost. */
const HEARTBEATS_PER_TIMEOUT = 4

/** Runs `work` while the engine is told that this worker lives; `signal` aborts when the engine no longer wants it. */
export async function withHeartbeat<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const timeoutMs = activityInfo().heartbeatTimeoutMs ?? 10_000
  const beat = setInterval(() => heartbeat(), timeoutMs / HEARTBEATS_PER_TIMEOUT)
  try {
    return await work(cancellationSignal())
  } finally {
    clearInterval(beat)
  }
}

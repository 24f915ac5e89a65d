/**
 * Attempts by their expected duration: `first` attempts of healthy webhooks; `unproven`, first attempts at an endpoint that
 * never answered; `retry`, retries and attempts of webhooks that fail quickly; `slow`, for endpoints that are slow or hang.
 */
export type AttemptKind = 'first' | 'unproven' | 'retry' | 'slow'

/** An endpoint that takes longer to answer is slow. */
export const SLOW_POST_MS = 1_000

/** The kinds with a task queue and slots of their own, so that none waits for another. */
export type QueueKind = Exclude<AttemptKind, 'unproven'>

/** Returns the task queue of a kind. Workflows share that of first attempts; an unproven endpoint counts as slow. */
export function attemptQueue(taskQueue: string, kind: AttemptKind): string {
  return kind === 'first' ? taskQueue : `${taskQueue}-${kind === 'unproven' ? 'slow' : kind}`
}

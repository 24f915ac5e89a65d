/**
 * The task queues of attempts, each with slots of its own, so that none waits for another: `first` attempts at fast
 * endpoints; their `retry` attempts; `slow`, every attempt at an endpoint that is slow, or that never answered.
 */
export type AttemptQueue = 'first' | 'retry' | 'slow'

/** An endpoint that takes longer to answer is slow. */
export const SLOW_POST_MS = 1_000

/** Returns the name of the task queue. Workflows share that of first attempts. */
export function attemptQueue(taskQueue: string, queue: AttemptQueue): string {
  return queue === 'first' ? taskQueue : `${taskQueue}-${queue}`
}

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

/** What a workflow requests of a worker: attempt `number` of a delivery. */
export type AttemptRequest = {
  organisationId: string
  webhookId: string
  deliveryId: string
  /** 1-based. */
  number: number
  /** The instant to wait for, in Unix ms of the database's clock; null: the row is claimed at once, if it is due. */
  dueAtMs: number | null
  /** How long the worker waits for that instant at most. */
  maxWaitMs: number
  /** The task queue of the request: only a `slow` attempt is made at a slow endpoint. */
  queue: AttemptQueue
}

import type { AttemptQueue } from './task-queues.ts'

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

/**
 * Attempts by what may be expected of them: `first` ones of healthy webhooks; `unproven`, first ones at an endpoint that
 * never answered; `retry`, retries and attempts of webhooks that fail quickly; `slow`, of webhooks that are slow or hang.
 */
export type AttemptKind = 'first' | 'unproven' | 'retry' | 'slow'

/** The kinds that have a task queue and slots of their own, so that none waits for another. */
export type QueueKind = Exclude<AttemptKind, 'unproven'>

/** Workflows and first attempts share the queue of the worker's name. An unproven endpoint may hang. */
export function attemptQueue(taskQueue: string, kind: AttemptKind): string {
  return kind === 'first' ? taskQueue : `${taskQueue}-${kind === 'unproven' ? 'slow' : kind}`
}

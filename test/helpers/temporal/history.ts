import type { WorkflowHandle } from '@temporalio/client'

export type History = Awaited<ReturnType<WorkflowHandle['fetchHistory']>>

type Timestamp = { seconds?: unknown; nanos?: number | null } | null | undefined

/** Unix ms of an event's time. */
export function toMs(time: Timestamp): number {
  return Number(time?.seconds ?? 0) * 1_000 + (time?.nanos ?? 0) / 1e6
}

/**
 * From each attempt to the start of the next, in ms of Temporal's clock: from the start of its activity, before its POST,
 * and from the completion, after its outcome was recorded.
 */
export function attemptGapsMs(history: History): { fromStart: number; fromCompletion: number }[] {
  const events = history.events ?? []
  const startedAt = events
    .filter((event) => event.activityTaskStartedEventAttributes)
    .map((event) => toMs(event.eventTime))
  const completedAt = events
    .filter((event) => event.activityTaskCompletedEventAttributes)
    .map((event) => toMs(event.eventTime))
  return startedAt.slice(1).map((started, index) => ({
    fromStart: started - (startedAt[index] ?? Number.NaN),
    fromCompletion: started - (completedAt[index] ?? Number.NaN),
  }))
}

/** Every text in the history, payloads decoded, to search it for what must not be in it. */
export function readableHistory(history: History): string {
  const texts: string[] = []
  collect(history, texts)
  return texts.join('\n')
}

function collect(value: unknown, texts: string[]): void {
  if (typeof value === 'string') texts.push(value)
  else if (value instanceof Uint8Array) texts.push(Buffer.from(value).toString('utf8'))
  else if (typeof value === 'object' && value !== null)
    Object.values(value).forEach((inner) => collect(inner, texts))
}

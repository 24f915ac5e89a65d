import type { WorkflowHandle } from '@temporalio/client'

export type History = Awaited<ReturnType<WorkflowHandle['fetchHistory']>>

type Timestamp = { seconds?: unknown; nanos?: number | null } | null | undefined

/** Unix ms of an event's time. */
export function toMs(time: Timestamp): number {
  return Number(time?.seconds ?? 0) * 1_000 + (time?.nanos ?? 0) / 1e6
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

import type { Answer, PublishRequest } from '../target/adapter.ts'
import { startHarnessProcess } from './harness-process.ts'

/** `closed`: each of so many producers sends its next event when the last is acknowledged. `open`: at a fixed pace. */
export type Pace = { kind: 'closed'; concurrency: number } | { kind: 'open'; perSecond: number }

/** Events to publish: so many, or for so long. */
export type PublishJob = {
  /** Requests go to them round-robin. */
  apiUrls: readonly string[]
  request: PublishRequest
  pace: Pace
  limit: { events: number } | { durationMs: number }
}

/** Times by `clock`. `intendedAt` is when the pace required the event: what a slow API delays counts from there. In a
 * closed loop it is `sentAt`. */
type Times = { intendedAt: number; sentAt: number; acknowledgedAt: number }

/** `answer` is an error where there is none. */
export type AnsweredEvent = Times & { answer: Answer | string }

/** `deliveryIds` are none, and `error` says why, where the event was not accepted. */
export type PublishedEvent = Times & { deliveryIds: string[]; error: string | null }

export type Generator = {
  pid: number
  /** `readIds` throws where an event was not accepted. */
  publish(job: PublishJob, readIds: (answer: Answer) => string[]): Promise<PublishedEvent[]>
  stop(): Promise<void>
}

export function startGenerator(): Generator {
  const child = startHarnessProcess<PublishJob>(new URL('./generator-main.ts', import.meta.url))
  return {
    pid: child.pid,
    async publish(job, readIds) {
      const answered = await child.ask<AnsweredEvent[]>(job)
      return answered.map(({ answer, ...times }) => ({ ...times, ...read(answer, readIds) }))
    },
    stop: () => child.stop(),
  }
}

function read(
  answer: AnsweredEvent['answer'],
  readIds: (answer: Answer) => string[],
): Pick<PublishedEvent, 'deliveryIds' | 'error'> {
  if (typeof answer === 'string') return { deliveryIds: [], error: answer }
  try {
    return { deliveryIds: readIds(answer), error: null }
  } catch (error) {
    return { deliveryIds: [], error: String(error) }
  }
}

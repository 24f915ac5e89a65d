import { startHarnessProcess } from './harness-process.ts'

/** `closed`: each of so many producers sends its next event when the last is acknowledged. `open`: at a fixed pace. */
type Pace = { kind: 'closed'; concurrency: number } | { kind: 'open'; perSecond: number }

/** Events to publish: so many, or for so long. */
export type PublishJob = {
  /** Requests go to them round-robin. */
  apiUrls: readonly string[]
  organisationId: string
  apiKey: string
  eventKey: string
  /** Size of the body of a request; 1 KB if it is not given. */
  bodyBytes?: number
  pace: Pace
  limit: { events: number } | { durationMs: number }
}

/**
 * One event, times by `clock`. `intendedAt` is when the pace asked for it: what a slow API keeps waiting counts from
 * there. In a closed loop it is `sentAt`.
 */
export type PublishedEvent = {
  intendedAt: number
  sentAt: number
  acknowledgedAt: number
  /** None if it was not accepted. */
  deliveryIds: string[]
  /** What went wrong, if it was not accepted. */
  error: string | null
}

export type Generator = {
  pid: number
  publish(job: PublishJob): Promise<PublishedEvent[]>
  stop(): Promise<void>
}

export function startGenerator(): Generator {
  const child = startHarnessProcess<PublishJob>(new URL('./generator-main.ts', import.meta.url))
  return { pid: child.pid, publish: (job) => child.ask(job), stop: () => child.stop() }
}

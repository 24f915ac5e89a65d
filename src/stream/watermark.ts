import type { DataSource } from 'typeorm'
import { eventWriters, isOrderKept, lastPosition, type StreamPosition } from '../db/queries/event-stream.ts'
import type { Logger } from '../observability/logger.ts'

/** Finds the position up to which every event is either committed and readable, or never will be. */
export type Watermark = {
  /** Queries the database, and returns the furthest such position; null before the first. */
  advance(): Promise<StreamPosition | null>
  /** True while the next query may find a higher one. */
  isWaiting(): boolean
}

/** A transaction that delays events for longer is logged. */
const MAX_DELAY_MS = 10_000

/** Thrown when the database does not have the events that were read before: it was replaced by a standby or a backup. */
export class SequenceRegressedError extends Error {
  override readonly name = 'SequenceRegressedError'
}

/** `writers`: null until they are read. */
type Candidate = {
  position: StreamPosition
  writers: readonly string[] | null
  sinceMs: number
  isLogged: boolean
}

/**
 * Builds a watermark. An event gets its number when it is inserted and is readable when its transaction commits, so number
 * 5 may become readable after number 6. A transaction that writes an event holds a lock on the table from before it takes
 * the number until its commit is visible. So the watermark reads the last number, then the transactions with such a lock:
 * once these have ended, every event up to that number is settled. `CREATE INDEX CONCURRENTLY` waits in the same way.
 */
export function createWatermark(dependencies: {
  dataSource: DataSource
  logger: Logger
  nowMs?: () => number
}): Watermark {
  const { dataSource, logger, nowMs = () => performance.now() } = dependencies
  let settled: StreamPosition | null = null
  let candidate: Candidate | null = null

  return {
    isWaiting: () => candidate !== null,
    async advance() {
      if (candidate === null) {
        const position = await lastPosition(dataSource)
        if (settled !== null && position.sequence < settled.sequence) throw new SequenceRegressedError()
        if (position.sequence === settled?.sequence) return settled
        candidate = { position, writers: null, sinceMs: nowMs(), isLogged: false }
      }
      const now = await eventWriters(dataSource)
      candidate.writers = candidate.writers?.filter((writer) => now.includes(writer)) ?? now
      if (candidate.writers.length === 0) {
        // By then every event that was given a number up to `settled` again can be read.
        if (settled !== null && !(await isOrderKept(dataSource, settled))) throw new SequenceRegressedError()
        settled = candidate.position
        candidate = null
      } else if (!candidate.isLogged && nowMs() - candidate.sinceMs >= MAX_DELAY_MS) {
        candidate.isLogged = true
        logger.warn({ event: 'stream.delayed', transactions: candidate.writers })
      }
      return settled
    },
  }
}

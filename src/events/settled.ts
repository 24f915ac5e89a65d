import type { DataSource } from 'typeorm'
import { eventWriters, lastSequence } from '../db/queries/event-stream.ts'
import type { Logger } from '../logger.ts'

/** Finds numbers up to which every event has either been committed, and can be read, or never will be. */
export type Settled = {
  /** Looks once, and gives the highest such number that is known; null before the first. */
  look(): Promise<number | null>
  /** True while a look soon may find a higher one. */
  isWaiting(): boolean
}

/** Whoever waits for events should find in the log why none comes. */
const HELD_UP_MS = 10_000

/** Thrown where the database knows less than was read from it: a standby or a backup took its place. */
export class DatabaseWentBack extends Error {
  override readonly name = 'DatabaseWentBack'
}

/** `writers`: null until they have been asked for. */
type Candidate = { sequence: number; writers: readonly string[] | null; sinceMs: number; told: boolean }

/**
 * An event gets its number when it is inserted and can be read when its transaction commits, so that a reader who has
 * seen number 6 may still get to see number 5. But whoever writes an event holds a lock on the table from before the
 * number is taken until after the commit can be seen. So: note the number that was given last, then who holds such a
 * lock. Once none of these holds it any more, every number up to the noted one is settled, for whoever came later has a
 * higher one. `CREATE INDEX CONCURRENTLY` waits in the same way. Those who publish do nothing for it.
 */
export function createSettled(dependencies: {
  dataSource: DataSource
  logger: Logger
  nowMs?: () => number
}): Settled {
  const { dataSource, logger, nowMs = () => performance.now() } = dependencies
  let settled: number | null = null
  let candidate: Candidate | null = null

  return {
    isWaiting: () => candidate !== null,
    async look() {
      if (candidate === null) {
        const sequence = await lastSequence(dataSource)
        if (settled !== null && sequence < settled) throw new DatabaseWentBack()
        if (sequence === settled) return settled
        candidate = { sequence, writers: null, sinceMs: nowMs(), told: false }
      }
      const now = await eventWriters(dataSource)
      candidate.writers = candidate.writers?.filter((writer) => now.includes(writer)) ?? now
      if (candidate.writers.length === 0) {
        settled = candidate.sequence
        candidate = null
      } else if (!candidate.told && nowMs() - candidate.sinceMs >= HELD_UP_MS) {
        candidate.told = true
        logger.warn({ event: 'stream.held_up', transactions: candidate.writers }, 'stream.held_up')
      }
      return settled
    },
  }
}

import pLimit, { type LimitFunction } from 'p-limit'

/** Lets so much work of one webhook be under way at a time in this process; the rest waits, in order. */
type Turns = { take<T>(webhookId: string, work: () => Promise<T>): Promise<T> }

/**
 * For transactions that may wait for one row of their webhook: without turns, the many deliveries of one endpoint that
 * fails or recovers would fill the pool with connections that stand in line, and everyone else would wait for one.
 */
function createTurns(width: number): Turns {
  const lines = new Map<string, { limit: LimitFunction; users: number }>()
  return {
    async take(webhookId, work) {
      const line = lines.get(webhookId) ?? { limit: pLimit(width), users: 0 }
      lines.set(webhookId, line)
      line.users++
      try {
        return await line.limit(work)
      } finally {
        line.users--
        if (line.users === 0) lines.delete(webhookId)
      }
    },
  }
}

/** Failures of one webhook that are recorded at once: they share its incident's lock, and commit together. */
const CONCURRENT_FAILURES = 4

/** For what may resolve a delivery, which locks the incident alone, and for failures, which share it. */
export type IncidentTurns = { resolving: Turns; failing: Turns }

export function createIncidentTurns(): IncidentTurns {
  return { resolving: createTurns(1), failing: createTurns(CONCURRENT_FAILURES) }
}

const FIRST_RENEWAL = 16
const MAX_AGE_MS = 5_000

/** Says, before each statement on a connection, whether the plans it keeps are to be made anew. */
export type PlanRenewal = { isDue(): boolean }

/**
 * A connection keeps plans of its prepared statements and of the checks of foreign keys. PostgreSQL makes them anew
 * when a table was analysed, which is a minute after a burst began to fill it: until then a plan made for an empty
 * table reads the whole of a full one, for every row. So plans are dropped whenever the number of statements has
 * doubled, since so may have the tables, and when they are older than five seconds.
 */
export function createPlanRenewal(nowMs: () => number = () => performance.now()): PlanRenewal {
  let statements = 0
  let renewAt = FIRST_RENEWAL
  let renewedAtMs = nowMs()
  return {
    isDue() {
      statements++
      const now = nowMs()
      if (statements < renewAt && now - renewedAtMs < MAX_AGE_MS) return false
      renewAt = Math.max(FIRST_RENEWAL, 2 * statements)
      renewedAtMs = now
      return true
    },
  }
}

import type { DataSource } from 'typeorm'
import { renewClaims, type HeldRow } from '../../db/queries/attempts.ts'

/** Prolongs the leases of rows whose outcome is being recorded, so that nobody posts again because that takes long. */
export type ClaimRenewal = {
  /** Holds the row until the function returned is called. */
  hold(row: HeldRow): () => void
}

/** What is recorded within that time needs no renewal; a lease lasts longer than a POST by more than twice as much. */
const RENEW_INTERVAL_MS = 1_000

/** One statement a second for all rows, and none while all is well. */
export function createClaimRenewal(options: { dataSource: DataSource; leaseMs: number }): ClaimRenewal {
  const { dataSource, leaseMs } = options
  const held = new Map<HeldRow, { sinceMs: number }>()
  let isTicking = false

  async function tick(): Promise<void> {
    const before = performance.now() - RENEW_INTERVAL_MS
    const due = [...held].filter(([, { sinceMs }]) => sinceMs <= before).map(([row]) => row)
    if (due.length > 0) await renewClaims(dataSource, due, leaseMs)
  }

  function schedule(): void {
    isTicking = true
    setTimeout(() => {
      tick()
        // Whoever records the outcome meets the same fault, and says so.
        .catch(() => undefined)
        .finally(() => {
          if (held.size > 0) schedule()
          else isTicking = false
        })
    }, RENEW_INTERVAL_MS).unref()
  }

  return {
    hold(row) {
      held.set(row, { sinceMs: performance.now() })
      if (!isTicking) schedule()
      return () => held.delete(row)
    },
  }
}

import type { DataSource } from 'typeorm'
import { renewClaims, type LeasedRow } from '../../db/queries/claims.ts'

/** Renews the claim of a row until the returned function is called. */
export type RenewClaim = (row: LeasedRow) => () => void

/** An outcome that is recorded sooner needs no renewal; the lease exceeds the POST by more than twice as much. */
const RENEW_INTERVAL_MS = 1_000

/**
 * Renews the claims of rows whose outcome is being recorded, so that no other run posts meanwhile. All rows share one
 * statement a second.
 */
export function createClaimRenewal(options: { dataSource: DataSource; leaseMs: number }): RenewClaim {
  const { dataSource, leaseMs } = options
  const sinceMs = new Map<LeasedRow, number>()
  let isScheduled = false

  async function renew(): Promise<void> {
    const before = performance.now() - RENEW_INTERVAL_MS
    const due = [...sinceMs].filter(([, since]) => since <= before).map(([row]) => row)
    // Recording the outcome meets the same error, and logs it.
    if (due.length > 0) await renewClaims(dataSource, due, leaseMs).catch(() => undefined)
    isScheduled = false
    schedule()
  }

  function schedule(): void {
    if (isScheduled || sinceMs.size === 0) return
    isScheduled = true
    setTimeout(() => void renew(), RENEW_INTERVAL_MS).unref()
  }

  return (row) => {
    sinceMs.set(row, performance.now())
    schedule()
    return () => sinceMs.delete(row)
  }
}

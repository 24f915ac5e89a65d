import type { DataSource } from 'typeorm'
import { renewLeases } from '../protocol/claim.ts'

type OwnedRow = { deliveryId: string; owner: string }

/** Renews the lease of a row until the returned function is called. */
export type RenewLease = (row: OwnedRow) => () => void

/** An outcome that is recorded sooner needs no renewal; the lease exceeds the POST by more than twice as much. */
const RENEW_INTERVAL_MS = 1_000

/**
 * Renews the leases of rows whose outcome is being recorded, so that no other run posts meanwhile. All rows share one
 * statement a second.
 */
export function createLeaseRenewal(options: { dataSource: DataSource; leaseMs: number }): RenewLease {
  const { dataSource, leaseMs } = options
  const sinceMs = new Map<OwnedRow, number>()
  let isScheduled = false

  async function renew(): Promise<void> {
    const before = performance.now() - RENEW_INTERVAL_MS
    const due = [...sinceMs].filter(([, since]) => since <= before).map(([row]) => row)
    // Recording the outcome meets the same error, and logs it.
    if (due.length > 0) await renewLeases(dataSource, due, leaseMs).catch(() => undefined)
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

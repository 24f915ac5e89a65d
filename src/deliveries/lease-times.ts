/** How late an attempt is when the sweeper checks whether its workflow is gone or stuck. */
export const SWEEP_DELAY_MS = 15_000

/** The same after a time-out: retries of hanging endpoints wait for each other. */
export const TIMEOUT_SWEEP_DELAY_MS = 60_000

/** The same after an inline attempt that failed, while the delivery has no workflow. */
export const START_SWEEP_DELAY_MS = 5_000

/** Time by which the lease of a claim exceeds the deadline of its POST; no POST begins later. */
export const CLAIM_MARGIN_MS = 5_000

/** Returns how long the claim of one attempt leases the row, in ms. */
export function claimLeaseMs(attemptTimeoutMs: number): number {
  return attemptTimeoutMs + CLAIM_MARGIN_MS
}

/** A busy process would lose a shorter lease before it renews it. */
const MIN_LEASE_MS = 15_000

/** Returns how long a process leases the deliveries that it commits or recovers, in ms: at least as long as a claim. */
export function deliveryLeaseMs(attemptTimeoutMs: number): number {
  return Math.max(MIN_LEASE_MS, claimLeaseMs(attemptTimeoutMs))
}

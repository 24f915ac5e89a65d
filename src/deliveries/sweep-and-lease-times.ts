/** How late an attempt is when the sweeper checks whether its workflow is gone or stuck. */
export const SWEEP_DELAY_MS = 15_000

/** The same after a time-out: retries of hanging endpoints wait for each other. */
export const TIMEOUT_SWEEP_DELAY_MS = 60_000

/** How late a retry is when another process takes it up, while the delivery has no workflow. */
export const START_SWEEP_DELAY_MS = 5_000

/** Time by which the lease of a claim exceeds the deadline of its POST; no POST begins later. */
const CLAIM_MARGIN_MS = 5_000

/** Returns how long the claim of one attempt leases the row, in ms. */
export function claimLeaseMs(attemptTimeoutMs: number): number {
  return attemptTimeoutMs + CLAIM_MARGIN_MS
}

/**
 * How long a pending delivery is left to the process that is about to start its workflow. What that process has not
 * started by then it drops, and any process takes the row up.
 */
export const START_HOLD_MS = 4_000

/** How long an attempt is overdue before the sweep asks whether the workflow is gone or stuck. */
export const SWEEP_AFTER_MS = 15_000

/** The same after a time-out: retries of endpoints that hang wait for each other. */
export const SWEEP_SLOW_AFTER_MS = 60_000

/** The same for one whose first attempt was made inline, and whose workflow was never seen to start. */
export const START_AGAIN_AFTER_MS = 5_000

/** What a claim lasts beyond the POST's own deadline: nobody else may post meanwhile, and no POST begins later. */
export const CLAIM_MARGIN_MS = 5_000

/** How long a row is held by whoever may post for it. */
export function claimLeaseMs(attemptTimeoutMs: number): number {
  return attemptTimeoutMs + CLAIM_MARGIN_MS
}

/** A hold shorter than this would be lost by a process that is only busy. */
const SHORTEST_LEASE_MS = 15_000

/**
 * How long a process holds deliveries that it is to begin with, from their commit on; it renews the hold while it lives.
 * It may post for them at once.
 */
export function deliveryLeaseMs(attemptTimeoutMs: number): number {
  return Math.max(SHORTEST_LEASE_MS, claimLeaseMs(attemptTimeoutMs))
}

/** How long after its time a delivery is looked at by the sweep, in case its workflow is gone. */
export const SWEEP_AFTER_MS = 120_000

/** How long a process holds deliveries that it is to start; it renews the hold while it lives. */
export const START_LEASE_MS = 15_000

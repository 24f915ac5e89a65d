import type { Db } from '../../db/connection/db.ts'
import { SWEEP_DELAY_MS } from './sweep.ts'
import { loadSql } from './load-sql.ts'

const CLAIM = loadSql('claim')
const RELEASE = loadSql('release')
const RENEW = loadSql('renew-lease')

/** Time by which the lease of a claim exceeds the deadline of its POST; no POST begins later. */
const CLAIM_MARGIN_MS = 5_000

/** Returns how long the claim of one attempt leases the row, in ms. */
export function claimLeaseMs(attemptTimeoutMs: number): number {
  return attemptTimeoutMs + CLAIM_MARGIN_MS
}

/** Which attempt of which delivery. `number` is 1-based. */
export type AttemptKey = { organisationId: string; deliveryId: string; number: number }

/** A run of an attempt: `owner` is its id, and no other run's. `isWorkflow`: a workflow makes it. */
export type Run = AttemptKey & { owner: string; isWorkflow: boolean }

/** What a run needs to make its attempt. */
export type Claim = {
  /** The run that owns the row. */
  owner: string
  /** When the statement that claimed the row was sent, on `performance.now()`. */
  claimedAtMs: number
  /** The runs of this attempt that may have posted, this one included. */
  runs: number
  /** True when a user requested this attempt. */
  isRequested: boolean
  /** How long before its claim the delivery was committed, or its webhook changed later, on the database's clock. */
  ageMs: number
  webhookId: string
  eventKey: string
  /** Of the event, for the log. */
  traceId: string
  url: string
  /** Sealed. */
  secret: string | null
  body: Buffer
}

/**
 * Claims deliveries for runs, in one statement. Returns for each run what it needs; null where it did not get its row:
 * the attempt is recorded or not due, another run has it, or the webhook does not take it (`findDeliveryStatus` returns why),
 * or another transaction has just locked it.
 */
export async function claimAttempts(
  db: Db,
  runs: readonly Run[],
  leaseMs: number,
): Promise<(Claim | null)[]> {
  const statement = CLAIM.with({
    ids: runs.map(({ deliveryId }) => deliveryId),
    organisationIds: runs.map(({ organisationId }) => organisationId),
    numbers: runs.map(({ number }) => number),
    owners: runs.map(({ owner }) => owner),
    areWorkflows: runs.map(({ isWorkflow }) => isWorkflow),
    leaseMs,
    sweepDelayMs: SWEEP_DELAY_MS,
  })
  let claimedAtMs = NaN
  const claimed = await statement.preparedRows<Omit<Claim, 'claimedAtMs'>>(db, CLAIM.name, () => {
    claimedAtMs = performance.now()
  })
  const byOwner = new Map(claimed.map((claim) => [claim.owner, { ...claim, claimedAtMs }]))
  return runs.map(({ owner }) => byOwner.get(owner) ?? null)
}

/** A run that ends without an outcome. `hasPosted`: its POST may have been sent, so it counts as a lost one. */
export type ReleasedRun = { deliveryId: string; owner: string; hasPosted: boolean }

/** Returns the rows of runs, as far as they still own them. */
export async function releaseRuns(db: Db, runs: readonly ReleasedRun[]): Promise<void> {
  if (runs.length === 0) return
  const statement = RELEASE.with({
    ids: runs.map(({ deliveryId }) => deliveryId),
    owners: runs.map(({ owner }) => owner),
    havePosted: runs.map(({ hasPosted }) => hasPosted),
    sweepDelayMs: SWEEP_DELAY_MS,
  })
  await statement.rows(db)
}

/** Renews the leases of runs, as far as they still own their rows. */
export async function renewLeases(
  db: Db,
  runs: readonly { deliveryId: string; owner: string }[],
  leaseMs: number,
): Promise<void> {
  const statement = RENEW.with({
    ids: runs.map(({ deliveryId }) => deliveryId),
    owners: runs.map(({ owner }) => owner),
    leaseMs,
    sweepDelayMs: SWEEP_DELAY_MS,
  })
  await statement.rows(db)
}

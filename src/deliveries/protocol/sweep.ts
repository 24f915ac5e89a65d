import type { Db } from '../../db/connection/db.ts'
import { loadSql } from './load-sql.ts'

const SWEEP_LATER = loadSql('sweep-later')
const SWEEP_EVERYTHING = loadSql('sweep-everything')
const MARK_STARTED = loadSql('mark-workflow-started')

/** A row as the sweeper read it. */
export type SweptRow = { deliveryId: string; sweepAt: Date }

/** When the sweeper reads a row again; `inMs` null: never, a final row is owed nothing more. */
export type NextSweep = SweptRow & { inMs: number | null; pausedSince: Date | null }

/** Sets when rows are swept again. Returns those that are unchanged since they were read. */
export function sweepLater(db: Db, rows: readonly NextSweep[]): Promise<SweptRow[]> {
  if (rows.length === 0) return Promise.resolve([])
  const statement = SWEEP_LATER.with({
    ids: rows.map(({ deliveryId }) => deliveryId),
    seenAts: rows.map(({ sweepAt }) => sweepAt),
    inMs: rows.map(({ inMs }) => (inMs === null ? null : Math.round(inMs))),
    pausedSince: rows.map(({ pausedSince }) => pausedSince),
  })
  return statement
    .rows<{ id: string; sweepAt: Date }>(db)
    .then((found) => found.map(({ id, sweepAt }) => ({ deliveryId: id, sweepAt })))
}

/** Makes every late delivery that had a workflow due for the sweeper: Temporal has lost its data. */
export async function sweepDeliveries(db: Db): Promise<void> {
  await SWEEP_EVERYTHING.with({}).rows(db)
}

/** Notes that the workflows of deliveries were started. */
export async function markWorkflowsStarted(db: Db, deliveryIds: readonly string[]): Promise<void> {
  if (deliveryIds.length === 0) return
  await MARK_STARTED.with({ ids: deliveryIds, sweepDelayMs: SWEEP_DELAY_MS }).rows(db)
}

/** How late an attempt is when the sweeper checks whether its workflow is gone or stuck. */
export const SWEEP_DELAY_MS = 15_000

/** The same after a time-out: retries of hanging endpoints wait for each other. */
export const TIMEOUT_SWEEP_DELAY_MS = 60_000

/** How late a retry is when another process takes it up, while the delivery has no workflow. */
export const START_SWEEP_DELAY_MS = 5_000

/**
 * How long a pending delivery is left to the process that is about to start its workflow. What that process has not
 * started by then it drops, and any process takes the row up.
 */
export const START_HOLD_MS = 4_000

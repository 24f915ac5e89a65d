import { WebhookLockedError } from '../../db/connection/connection-errors.ts'
import {
  findFirstAttempts,
  findOverdue,
  findOwedSignals,
  findOwedWorkflows,
  findUnstarted,
} from '../../db/queries/due-deliveries.ts'
import { findRefusing } from '../../db/queries/deliveries.ts'
import { stopRefused, type StopDependencies } from '../attempt/claim-attempt.ts'
import { claimAttempts, releaseRuns, type Claim, type ReleasedRun, type Run } from '../protocol/claim.ts'
import { markWorkflowsStarted, sweepLater, type NextSweep, type SweptRow } from '../protocol/sweep.ts'
import type { Logger } from '../../observability/logger.ts'
import type { Timers } from '../../timers.ts'

/**
 * The rows of deliveries, as the dispatcher and the sweeper use them. What finds rows changes none. What changes them
 * leaves a row alone that has gone on since it was read.
 */
export type DeliveryRows = ReturnType<typeof createDeliveryRows>

/** `leaseMs`: how long a claim leases the row. */
export function createDeliveryRows(dependencies: StopDependencies & { leaseMs: number }) {
  const { dataSource, leaseMs } = dependencies

  async function stopAllRefused(deliveryIds: readonly string[]): Promise<void> {
    for (const of of await findRefusing(dataSource, deliveryIds))
      await stopRefused(dependencies, of).catch((error: unknown) => {
        // With a later claim. Those of the others are stopped meanwhile.
        if (!(error instanceof WebhookLockedError)) throw error
      })
  }

  return {
    findUnstarted: (options: Parameters<typeof findUnstarted>[1]) => findUnstarted(dataSource, options),
    /**
     * Claims deliveries in one statement. Returns null for each that was not: it is not due, another run has it, or its
     * webhook does not take it; then it is stopped.
     */
    claim: async (runs: readonly Run[]): Promise<(Claim | null)[]> => {
      const claims = await claimAttempts(dataSource, runs, leaseMs)
      const refused = runs.filter((_, index) => claims[index] === null).map(({ deliveryId }) => deliveryId)
      // Not awaited: what was claimed has to begin within a second. What fails is refused again by the next pass.
      if (refused.length > 0) stopAllRefused(refused).catch(() => undefined)
      return claims
    },
    release: (runs: readonly ReleasedRun[]) => releaseRuns(dataSource, runs),
    sweepLater: (rows: readonly NextSweep[]) => sweepLater(dataSource, rows),
    markWorkflowsStarted: (deliveryIds: readonly string[]) => markWorkflowsStarted(dataSource, deliveryIds),
    findFirstAttempts: (deliveryIds: readonly string[]) => findFirstAttempts(dataSource, deliveryIds),
    findOverdue: (limit: number) => findOverdue(dataSource, limit),
    findOwedSignals: (limit: number) => findOwedSignals(dataSource, limit),
    findOwedWorkflows: (limit: number) => findOwedWorkflows(dataSource, limit),
  }
}

/** Has no other process take up rows for `holdMs`. Returns those that this process has now, with their new `sweepAt`. */
export async function hold<Row extends SweptRow & Partial<Pick<NextSweep, 'pausedSince'>>>(
  rows: Pick<DeliveryRows, 'sweepLater'>,
  found: readonly Row[],
  holdMs: number,
): Promise<Row[]> {
  if (found.length === 0) return []
  const held = await rows.sweepLater(
    found.map(({ deliveryId, sweepAt, pausedSince = null }) => ({
      deliveryId,
      sweepAt,
      inMs: holdMs,
      pausedSince,
    })),
  )
  const sweepAts = new Map(held.map(({ deliveryId, sweepAt }) => [deliveryId, sweepAt]))
  return found.flatMap((row) => {
    const sweepAt = sweepAts.get(row.deliveryId)
    return sweepAt === undefined ? [] : [{ ...row, sweepAt }]
  })
}

/** Changes of rows that share a statement. What is lost comes back when its time on the row is over. */
export type RowBatch<Item> = {
  add(item: Item): void
  /** Returns when every change is written. */
  flush(): Promise<void>
}

/** Changes of this time share a statement; those that the database refused are written again with others. */
const BATCH_DELAY_MS = 50
const RETRY_DELAY_MS = 1_000

/** `what` names the change in the log. */
export function createRowBatch<Item>(
  what: string,
  write: (items: Item[]) => Promise<unknown>,
  { logger, timers }: { logger: Logger; timers: Timers },
): RowBatch<Item> {
  let items: Item[] = []
  let cancel: (() => void) | null = null
  const writing = new Set<Promise<unknown>>()

  function send(): void {
    cancel?.()
    cancel = null
    if (items.length === 0) return
    const sent = items
    items = []
    const written = write(sent)
      .catch((error: unknown) => {
        logger.warn({ event: 'dispatcher.database_failed', what, err: error })
        items = [...sent, ...items]
        cancel ??= timers.after(RETRY_DELAY_MS, send)
      })
      .finally(() => writing.delete(written))
    writing.add(written)
  }

  return {
    add(item) {
      items.push(item)
      cancel ??= timers.after(BATCH_DELAY_MS, send)
    },
    async flush() {
      send()
      await Promise.all(writing)
    },
  }
}

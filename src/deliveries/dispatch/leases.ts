import type { DataSource } from 'typeorm'
import { markStarted, releaseDeliveries, renewLeases } from '../../db/queries/keeping.ts'
import type { Logger } from '../../logger.ts'
import { createBatcher } from './batcher.ts'
import { SWEEP_AFTER_MS } from '../lease-times.ts'

/** The leases of the deliveries that the dispatcher has in hand; rows are updated in batches. */
export type Leases = {
  /** Renews the lease of a row, which began at `sinceMs`, until one of the others is called. */
  hold(deliveryId: string, sinceMs: number): void
  /** How long the lease of a row still lasts at least; 0 when it is not held. */
  heldForMs(deliveryId: string): number
  /** Stops renewing: the outcome of the attempt has changed the row. */
  forget(deliveryId: string): void
  /** Marks the row: its workflow runs. */
  started(deliveryId: string): void
  /** Releases the row to the sweeper of any process: a moment later, and at once when this process ends. */
  release(deliveryId: string): void
  /** Stops renewing. What is released from now on may be taken at once. */
  close(): void
  /** Returns when every change is written. */
  flush(): Promise<void>
}

/** Changes of so long are written in one statement. */
const BATCH_DELAY_MS = 50

/** Share of a lease after which it is renewed: what is left is enough for a POST. */
const RENEWED_AFTER = 1 / 4

/** A released row is taken again so much later. */
const RELEASE_DELAY_MS = 2_000

export function createLeases(options: {
  dataSource: DataSource
  logger: Logger
  owner: string
  leaseMs: number
}): Leases {
  const { dataSource, logger, owner, leaseMs } = options
  // Until when each is held, on `performance.now()`.
  const kept = new Map<string, number>()
  let isClosed = false

  const quietly = (what: string) => (error: unknown) =>
    logger.warn({ event: 'starter.database', what, err: error }, 'starter.database')
  const noteStarted = createBatcher<string>(BATCH_DELAY_MS, (ids) =>
    markStarted(dataSource, ids, SWEEP_AFTER_MS).catch(quietly('mark')),
  )
  const released = createBatcher<string>(BATCH_DELAY_MS, (ids) =>
    releaseDeliveries(dataSource, owner, ids, isClosed ? 0 : RELEASE_DELAY_MS).catch(quietly('release')),
  )
  const renewal = setInterval(() => {
    if (kept.size > 0) void renew().catch(quietly('renew'))
  }, leaseMs * RENEWED_AFTER)

  async function renew(): Promise<void> {
    const untilMs = performance.now() + leaseMs
    const renewed = await renewLeases(dataSource, [...kept.keys()], { owner, leaseMs })
    for (const id of renewed) if (kept.has(id)) kept.set(id, untilMs)
  }

  return {
    hold: (deliveryId, sinceMs) => kept.set(deliveryId, sinceMs + leaseMs),
    heldForMs: (deliveryId) => Math.max(0, (kept.get(deliveryId) ?? 0) - performance.now()),
    forget: (deliveryId) => kept.delete(deliveryId),
    started(deliveryId) {
      kept.delete(deliveryId)
      noteStarted.add(deliveryId)
    },
    release(deliveryId) {
      kept.delete(deliveryId)
      released.add(deliveryId)
    },
    close() {
      isClosed = true
      clearInterval(renewal)
    },
    async flush() {
      await Promise.all([noteStarted.flush(), released.flush()])
    },
  }
}

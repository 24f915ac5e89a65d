import type { DataSource } from 'typeorm'
import { markStarted, releaseDeliveries, renewLeases } from '../db/queries/keeping.ts'
import type { Logger } from '../logger.ts'
import { createBatcher } from './batcher.ts'
import { SWEEP_AFTER_MS } from './timing.ts'

/** The rows of deliveries that this process is to begin with: their leases, and what is noted on them, in batches. */
export type KeptRows = {
  /** Holds the row, whose lease began at `sinceMs`, until one of the others is called; the lease is renewed. */
  keep(deliveryId: string, sinceMs: number): void
  /** How long the lease of a row still lasts at least; 0 when it is not held. */
  heldForMs(deliveryId: string): number
  has(deliveryId: string): boolean
  size(): number
  /** The row goes on by itself, or another one keeps it now. */
  letGo(deliveryId: string): void
  /** Its workflow runs. */
  started(deliveryId: string): void
  /** Gives the row back; the sweep of any process takes it up, `soon` or `later`; at the end of this one, at once. */
  giveBack(deliveryId: string, again: 'soon' | 'later'): void
  /** Renews nothing any more, and returns when everything is noted. What is given back from now on comes at once. */
  close(): void
  flush(): Promise<void>
}

/** How long notes wait for others to be written with them in one statement. */
const NOTE_AFTER_MS = 50

/** Of its lease: what is left is enough for a POST. */
const RENEWED_AFTER = 1 / 4

/** What was given back is taken up again so much later. */
const AGAIN_AFTER_MS = { soon: 2_000, later: 30_000 }

export function createKeptRows(options: {
  dataSource: DataSource
  logger: Logger
  owner: string
  leaseMs: number
}): KeptRows {
  const { dataSource, logger, owner, leaseMs } = options
  // Until when each is held, on `performance.now()`.
  const kept = new Map<string, number>()
  let isClosed = false

  const quietly = (what: string) => (error: unknown) =>
    logger.warn({ event: 'starter.database', what, err: error }, 'starter.database')
  const noteStarted = createBatcher<string>(NOTE_AFTER_MS, (ids) =>
    markStarted(dataSource, ids, SWEEP_AFTER_MS).catch(quietly('mark')),
  )
  const releasing = (again: 'soon' | 'later') =>
    createBatcher<string>(NOTE_AFTER_MS, (ids) =>
      releaseDeliveries(dataSource, owner, ids, isClosed ? 0 : AGAIN_AFTER_MS[again]).catch(
        quietly('release'),
      ),
    )
  const release = { soon: releasing('soon'), later: releasing('later') }
  const renewal = setInterval(() => {
    if (kept.size > 0) void renew().catch(quietly('renew'))
  }, leaseMs * RENEWED_AFTER)

  async function renew(): Promise<void> {
    const untilMs = performance.now() + leaseMs
    const renewed = await renewLeases(dataSource, [...kept.keys()], { owner, leaseMs })
    for (const id of renewed) if (kept.has(id)) kept.set(id, untilMs)
  }

  return {
    keep: (deliveryId, sinceMs) => kept.set(deliveryId, sinceMs + leaseMs),
    heldForMs: (deliveryId) => Math.max(0, (kept.get(deliveryId) ?? 0) - performance.now()),
    has: (deliveryId) => kept.has(deliveryId),
    size: () => kept.size,
    letGo: (deliveryId) => kept.delete(deliveryId),
    started(deliveryId) {
      kept.delete(deliveryId)
      noteStarted.add(deliveryId)
    },
    giveBack(deliveryId, again) {
      kept.delete(deliveryId)
      release[again].add(deliveryId)
    },
    close() {
      isClosed = true
      clearInterval(renewal)
    },
    async flush() {
      await Promise.all([noteStarted.flush(), release.soon.flush(), release.later.flush()])
    },
  }
}

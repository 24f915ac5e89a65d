import type { DataSource } from 'typeorm'
import { markStarted, releaseDeliveries, renewLeases } from '../../db/queries/leases.ts'
import type { Logger } from '../../observability/logger.ts'
import { SWEEP_DELAY_MS } from '../lease-times.ts'

/** The leases of the deliveries that the dispatcher has in hand; rows are updated in batches. */
export type Leases = {
  /** Renews the lease of a row, which began at `sinceMs`, until `forget`, `markStarted` or `release` is called. */
  add(deliveryId: string, sinceMs: number): void
  /** Returns for how many ms the row is leased at least; 0 without a lease. */
  remainingMs(deliveryId: string): number
  /** Stops renewing: the outcome of the attempt has changed the row. */
  forget(deliveryId: string): void
  /** Marks the row: its workflow runs. */
  markStarted(deliveryId: string): void
  /** Releases the row to the sweepers of all processes, after RELEASE_DELAY_MS, or at once after `close`. */
  release(deliveryId: string): void
  /** Stops renewing. */
  close(): void
  /** Returns when every change is written. */
  flush(): Promise<void>
}

/** Changes of this time share a statement. */
const BATCH_DELAY_MS = 50

/** Share of a lease after which it is renewed: the rest is enough for a POST. */
const RENEWED_AFTER = 1 / 4

const RELEASE_DELAY_MS = 2_000

export function createLeases(options: {
  dataSource: DataSource
  logger: Logger
  owner: string
  leaseMs: number
}): Leases {
  const { dataSource, logger, owner, leaseMs } = options
  // The ends of the leases, on `performance.now()`.
  const endsAtMs = new Map<string, number>()
  let changed: Record<'started' | 'released', string[]> = { started: [], released: [] }
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> = Promise.resolve()
  let isClosed = false
  const renewal = setInterval(() => {
    if (endsAtMs.size > 0) void renew().catch(warn('renew'))
  }, leaseMs * RENEWED_AFTER)

  const warn = (what: string) => (error: unknown) =>
    logger.warn({ event: 'dispatcher.database_failed', what, err: error }, 'dispatcher.database_failed')

  async function renew(): Promise<void> {
    const renewedUntilMs = performance.now() + leaseMs
    const renewed = await renewLeases(dataSource, [...endsAtMs.keys()], { owner, leaseMs })
    for (const id of renewed) if (endsAtMs.has(id)) endsAtMs.set(id, renewedUntilMs)
  }

  function change(deliveryId: string, to: 'started' | 'released'): void {
    endsAtMs.delete(deliveryId)
    changed[to].push(deliveryId)
    timer ??= setTimeout(write, BATCH_DELAY_MS)
  }

  function write(): void {
    clearTimeout(timer)
    timer = undefined
    const { started, released } = changed
    changed = { started: [], released: [] }
    const delayMs = isClosed ? 0 : RELEASE_DELAY_MS
    const statements: Promise<unknown>[] = [writing]
    if (started.length > 0)
      statements.push(markStarted(dataSource, started, SWEEP_DELAY_MS).catch(warn('mark')))
    if (released.length > 0)
      statements.push(releaseDeliveries(dataSource, owner, released, delayMs).catch(warn('release')))
    writing = Promise.all(statements).then(() => undefined)
  }

  return {
    add: (deliveryId, sinceMs) => endsAtMs.set(deliveryId, sinceMs + leaseMs),
    remainingMs: (deliveryId) => Math.max(0, (endsAtMs.get(deliveryId) ?? 0) - performance.now()),
    forget: (deliveryId) => endsAtMs.delete(deliveryId),
    markStarted: (deliveryId) => change(deliveryId, 'started'),
    release: (deliveryId) => change(deliveryId, 'released'),
    close() {
      isClosed = true
      clearInterval(renewal)
    },
    async flush() {
      write()
      await writing
    },
  }
}

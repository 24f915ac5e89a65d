import type { Logger } from '../../observability/logger.ts'
import type { Timers } from '../../timers.ts'
import type { ReleasedRun } from '../protocol/claim.ts'
import type { SweptRow } from '../protocol/sweep.ts'
import type { DeliveryRows } from './delivery-rows.ts'

/** Writes what the dispatcher has to say of rows, in batches. What is lost comes back when its time on the row is over. */
export type RowChanges = {
  workflowStarted(deliveryId: string): void
  release(run: Omit<ReleasedRun, 'hasPosted'>): void
  /** Leaves a row that was held to any process. */
  giveBack(row: SweptRow): void
  /** Returns when every change is written. */
  flush(): Promise<void>
}

/** Changes of this time share a statement; those that the database refused are written again with others. */
const BATCH_DELAY_MS = 50
const RETRY_DELAY_MS = 1_000

export function createRowChanges({
  rows,
  logger,
  timers,
}: {
  rows: Pick<DeliveryRows, 'markWorkflowsStarted' | 'release' | 'sweepLater'>
  logger: Logger
  timers: Timers
}): RowChanges {
  const started = batch('mark', (ids: string[]) => rows.markWorkflowsStarted(ids))
  const released = batch('release', (runs: ReleasedRun[]) => rows.release(runs))
  const givenBack = batch('give_back', (held: SweptRow[]) =>
    rows.sweepLater(held.map((row) => ({ ...row, inMs: 0, pausedSince: null }))),
  )

  function batch<Item>(what: string, write: (items: Item[]) => Promise<unknown>) {
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
          const fields = { event: 'dispatcher.database_failed', what, err: error }
          logger.warn(fields, fields.event)
          items = [...sent, ...items]
          cancel ??= timers.after(RETRY_DELAY_MS, send)
        })
        .finally(() => writing.delete(written))
      writing.add(written)
    }

    return {
      add(item: Item) {
        items.push(item)
        cancel ??= timers.after(BATCH_DELAY_MS, send)
      },
      async flush() {
        send()
        await Promise.all(writing)
      },
    }
  }

  return {
    workflowStarted: (deliveryId) => started.add(deliveryId),
    release: ({ deliveryId, owner }) => released.add({ deliveryId, owner, hasPosted: false }),
    giveBack: ({ deliveryId, sweepAt }) => givenBack.add({ deliveryId, sweepAt }),
    async flush() {
      await Promise.all([started.flush(), released.flush(), givenBack.flush()])
    },
  }
}

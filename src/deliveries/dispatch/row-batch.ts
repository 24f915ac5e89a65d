import type { Logger } from '../../observability/logger.ts'
import type { Timers } from '../../timers.ts'

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

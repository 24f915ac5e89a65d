/** Gathers items and hands them on together. */
export type Batcher<Item> = {
  add(item: Item): void
  /** Hands on what is left and returns when every batch is done. */
  flush(): Promise<void>
}

/** The first item opens a batch; `handle` gets it `delayMs` later with all that came meanwhile. `handle` never rejects. */
export function createBatcher<Item>(
  delayMs: number,
  handle: (items: Item[]) => Promise<void>,
): Batcher<Item> {
  let items: Item[] = []
  let timer: NodeJS.Timeout | null = null
  let last: Promise<void> = Promise.resolve()

  function handOn(): void {
    if (timer !== null) clearTimeout(timer)
    timer = null
    const batch = items
    items = []
    if (batch.length > 0) last = Promise.all([last, handle(batch)]).then(() => undefined)
  }

  return {
    add(item) {
      items.push(item)
      timer ??= setTimeout(handOn, delayMs)
    },
    async flush() {
      handOn()
      await last
    },
  }
}

/** A queue that serves its keys round-robin, so that many items of one key do not delay others. */
export type RoundRobinQueue<Item> = {
  add(key: string, item: Item): void
  /** Tries a key again that may have room now. */
  wake(key: string): void
  size(): number
  /** Returns the number of items whose key has room. */
  ready(): number
  sizeOf(key: string): number
  inFlight(): number
  /** Returns the keys with items. */
  keys(): string[]
  /** Removes and returns all items. */
  drain(): Item[]
  /** Removes and returns all items of each key for whose next item `isTaken` is true. */
  drainWhere(isTaken: (next: Item) => boolean): Item[]
  /** Returns when nothing is in flight. */
  idle(): Promise<void>
}

/**
 * Runs `concurrency` items at once; the next item is of the key that was served longest ago.
 * A key without room is skipped until `wake` is called for it. `run` never rejects.
 */
export function createRoundRobinQueue<Item>(options: {
  concurrency: number
  hasRoom: (key: string) => boolean
  run: (item: Item) => Promise<void>
}): RoundRobinQueue<Item> {
  const { concurrency, hasRoom, run } = options
  const queues = new Map<string, Item[]>()
  // Keys that may have room, the one served longest ago first.
  const ready = new Set<string>()
  const running = new Set<Promise<void>>()
  let size = 0

  function take(): Item | null {
    for (const key of ready) {
      ready.delete(key)
      if (!hasRoom(key)) continue
      const queue = queues.get(key)
      const item = queue?.shift()
      if (queue === undefined || item === undefined) continue
      if (queue.length === 0) queues.delete(key)
      else ready.add(key)
      size--
      return item
    }
    return null
  }

  function runNext(): void {
    while (running.size < concurrency) {
      const item = take()
      if (item === null) return
      const task = run(item).finally(() => {
        running.delete(task)
        runNext()
      })
      running.add(task)
    }
  }

  function drain(keys: readonly string[]): Item[] {
    const items = keys.flatMap((key) => queues.get(key) ?? [])
    for (const key of keys) {
      queues.delete(key)
      ready.delete(key)
    }
    size -= items.length
    return items
  }

  return {
    add(key, item) {
      const queue = queues.get(key)
      if (queue === undefined) queues.set(key, [item])
      else queue.push(item)
      size++
      ready.add(key)
      runNext()
    },
    wake(key) {
      if (!queues.has(key)) return
      ready.add(key)
      runNext()
    },
    size: () => size,
    ready: () => [...queues].reduce((sum, [key, items]) => sum + (hasRoom(key) ? items.length : 0), 0),
    sizeOf: (key) => queues.get(key)?.length ?? 0,
    inFlight: () => running.size,
    keys: () => [...queues.keys()],
    drain: () => drain([...queues.keys()]),
    drainWhere: (isTaken) =>
      drain([...queues].flatMap(([key, [next]]) => (next !== undefined && isTaken(next) ? [key] : []))),
    async idle() {
      await Promise.all(running)
    },
  }
}

/** Items that wait, taken key by key in turn, so that many items of one key do not delay others. */
export type RoundRobin<Item> = {
  add(key: string, item: Item): void
  /** Considers a key again that may have room now. */
  wake(key: string): void
  /**
   * Removes and returns the next item: of the key that was served longest ago among those with room. Null where there is
   * none, and where `isWanted` is false for it: then it remains the next.
   */
  take(isWanted?: (next: Item) => boolean): Item | null
  size(): number
  /** Returns the number of items whose key has room. */
  ready(): number
  sizeOf(key: string): number
  /** Returns the keys with items. */
  keys(): string[]
  /** Removes and returns all items. */
  drain(): Item[]
  /** Removes and returns all items of each key for whose next item `isTaken` is true. */
  drainWhere(isTaken: (next: Item) => boolean): Item[]
}

/** A round-robin that runs its items. */
export type RoundRobinQueue<Item> = Omit<RoundRobin<Item>, 'take'> & {
  inFlight(): number
  /** Returns when nothing is in flight. */
  idle(): Promise<void>
}

/** Builds the waiting items. A key without room is skipped until `wake` is called for it, or an item is added to it. */
export function createRoundRobin<Item>(hasRoom: (key: string) => boolean = () => true): RoundRobin<Item> {
  const queues = new Map<string, Item[]>()
  // Keys that may have room, the one served longest ago first.
  const ready = new Set<string>()
  let size = 0

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
    },
    wake(key) {
      if (queues.has(key)) ready.add(key)
    },
    take(isWanted = () => true) {
      for (const key of ready) {
        const queue = queues.get(key)
        const item = queue?.[0]
        if (queue === undefined || item === undefined || !hasRoom(key)) {
          ready.delete(key)
          continue
        }
        if (!isWanted(item)) return null
        queue.shift()
        ready.delete(key)
        if (queue.length === 0) queues.delete(key)
        else ready.add(key)
        size--
        return item
      }
      return null
    },
    size: () => size,
    ready: () => [...queues].reduce((sum, [key, items]) => sum + (hasRoom(key) ? items.length : 0), 0),
    sizeOf: (key) => queues.get(key)?.length ?? 0,
    keys: () => [...queues.keys()],
    drain: () => drain([...queues.keys()]),
    drainWhere: (isTaken) =>
      drain([...queues].flatMap(([key, [next]]) => (next !== undefined && isTaken(next) ? [key] : []))),
  }
}

/** Runs `concurrency` items at once, in the order of `createRoundRobin`. `run` never rejects. */
export function createRoundRobinQueue<Item>(options: {
  concurrency: number
  hasRoom: (key: string) => boolean
  run: (item: Item) => Promise<void>
}): RoundRobinQueue<Item> {
  const { concurrency, hasRoom, run } = options
  const waiting = createRoundRobin<Item>(hasRoom)
  const running = new Set<Promise<void>>()

  function runNext(): void {
    while (running.size < concurrency) {
      const item = waiting.take()
      if (item === null) return
      const task = run(item).finally(() => {
        running.delete(task)
        runNext()
      })
      running.add(task)
    }
  }

  return {
    ...waiting,
    add(key, item) {
      waiting.add(key, item)
      runNext()
    },
    wake(key) {
      waiting.wake(key)
      runNext()
    },
    inFlight: () => running.size,
    async idle() {
      await Promise.all(running)
    },
  }
}

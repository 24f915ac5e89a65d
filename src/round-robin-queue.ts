import { createTally } from './tally.ts'

/** Items that wait, taken key by key in turn, so that many items of one key do not delay others. */
export type RoundRobin<Item> = {
  add(key: string, item: Item): void
  /** Considers a key again that may have room now; without a key all of them. */
  wake(key?: string): void
  /**
   * Removes and returns the next item: of the key that was served longest ago among those with room. Null where there is
   * none, and where `isWanted` is false for it: then it remains the next.
   */
  take(isWanted?: (next: Item) => boolean): Item | null
  size(): number
  sizeOf(key: string): number
  /** Removes and returns the items for which `isTaken` is true. */
  drain(isTaken?: (item: Item) => boolean): Item[]
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

  return {
    add(key, item) {
      const queue = queues.get(key)
      if (queue === undefined) queues.set(key, [item])
      else queue.push(item)
      size++
      ready.add(key)
    },
    wake(key) {
      if (key === undefined) for (const waiting of queues.keys()) ready.add(waiting)
      else if (queues.has(key)) ready.add(key)
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
    sizeOf: (key) => queues.get(key)?.length ?? 0,
    drain(isTaken = () => true) {
      const taken: Item[] = []
      for (const [key, items] of queues) {
        const left: Item[] = []
        for (const item of items) (isTaken(item) ? taken : left).push(item)
        if (left.length === 0) queues.delete(key)
        else queues.set(key, left)
      }
      size -= taken.length
      return taken
    },
  }
}

/** Runs `concurrency` items at once, in the order of `createRoundRobin`. `run` never rejects; it may call `add` and `wake`. */
export function createRoundRobinQueue<Item>(options: {
  concurrency: number
  hasRoom: (key: string) => boolean
  run: (item: Item) => Promise<void>
}): RoundRobinQueue<Item> {
  const { concurrency, hasRoom, run } = options
  const waiting = createRoundRobin<Item>(hasRoom)
  const running = new Set<Promise<void>>()
  let isBeginning = false

  /** Called while an item begins, it returns: what is ready by then begins after that one, which counts as running. */
  function runNext(): void {
    if (isBeginning) return
    isBeginning = true
    try {
      while (running.size < concurrency) {
        const item = waiting.take()
        if (item === null) return
        const task = run(item).finally(() => {
          running.delete(task)
          runNext()
        })
        running.add(task)
      }
    } finally {
      isBeginning = false
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
      while (running.size > 0) await Promise.all(running)
    },
  }
}

/** A piece of work of `key`. `run` never rejects. */
export type FairWork = { key: string; run: () => Promise<void> }

/** Runs `concurrency` pieces of work at once, and `perKey` of one key, in the order of `createRoundRobin`. */
export function createFairQueue<Work extends FairWork>(options: {
  concurrency: number
  perKey: number
}): RoundRobinQueue<Work> {
  const { concurrency, perKey } = options
  const inFlight = createTally()
  const queue = createRoundRobinQueue<Work>({
    concurrency,
    hasRoom: (key) => inFlight.of(key) < perKey,
    async run({ key, run }) {
      inFlight.add(key, 1)
      await run()
      inFlight.add(key, -1)
      queue.wake(key)
    },
  })
  return queue
}

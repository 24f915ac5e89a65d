/** Lets items of many webhooks go in turn, webhook by webhook. */
export type FairLine<Item> = {
  add(webhookId: string, item: Item): void
  /** Something may go now that could not before. */
  look(webhookId: string): void
  waiting(): number
  /** Of those that wait, the ones whose turn may come: their webhook has room. */
  ready(): number
  waitingOf(webhookId: string): number
  inFlight(): number
  /** The webhooks that wait, each with the item that is next. */
  next(): [webhookId: string, item: Item][]
  /** Takes out all that wait, or all of one webhook. */
  drain(webhookId?: string): Item[]
  /** Returns when nothing is under way. */
  idle(): Promise<void>
}

/**
 * `concurrency` items are under way at once, and the next one is of the webhook whose last turn is longest ago.
 * A webhook for which `hasRoom` says no is passed over until `look` is called for it. `run` never rejects.
 */
export function createFairLine<Item>(options: {
  concurrency: number
  hasRoom: (webhookId: string) => boolean
  run: (item: Item) => Promise<void>
}): FairLine<Item> {
  const { concurrency, hasRoom, run } = options
  const lanes = new Map<string, Item[]>()
  // Webhooks that may have a turn, in the order of their turns.
  const turns = new Set<string>()
  let waiting = 0
  const underWay = new Set<Promise<void>>()

  function take(): Item | null {
    for (const webhookId of turns) {
      turns.delete(webhookId)
      if (!hasRoom(webhookId)) continue
      const lane = lanes.get(webhookId)
      const item = lane?.shift()
      if (lane === undefined || item === undefined) continue
      if (lane.length === 0) lanes.delete(webhookId)
      else turns.add(webhookId)
      waiting--
      return item
    }
    return null
  }

  function go(): void {
    while (underWay.size < concurrency) {
      const item = take()
      if (item === null) return
      const running = run(item).finally(() => {
        underWay.delete(running)
        go()
      })
      underWay.add(running)
    }
  }

  return {
    add(webhookId, item) {
      const lane = lanes.get(webhookId)
      if (lane === undefined) lanes.set(webhookId, [item])
      else lane.push(item)
      waiting++
      turns.add(webhookId)
      go()
    },
    look(webhookId) {
      if (!lanes.has(webhookId)) return
      turns.add(webhookId)
      go()
    },
    waiting: () => waiting,
    ready: () => [...turns].reduce((sum, webhookId) => sum + (lanes.get(webhookId)?.length ?? 0), 0),
    waitingOf: (webhookId) => lanes.get(webhookId)?.length ?? 0,
    inFlight: () => underWay.size,
    next: () => [...lanes].flatMap(([webhookId, [item]]) => (item === undefined ? [] : [[webhookId, item]])),
    drain(webhookId) {
      const of = webhookId === undefined ? [...lanes.keys()] : [webhookId]
      const items = of.flatMap((id) => lanes.get(id) ?? [])
      for (const id of of) {
        lanes.delete(id)
        turns.delete(id)
      }
      waiting -= items.length
      return items
    },
    async idle() {
      await Promise.all(underWay)
    },
  }
}

/** Where a delivery is that the dispatcher has in hand. */
export type DeliveryState =
  /** It waits in a queue of this process. */
  | { at: 'queued' }
  /** This process makes its first attempt. */
  | { at: 'inline' }
  /**
   * Its workflow has the first attempt, since `sinceMs`. `isBegun`: a worker of this process makes it. `isSlow`: it is on the task
   * queue of slow endpoints, where waiting says nothing about Temporal.
   */
  | { at: 'in_temporal'; sinceMs: number; isBegun: boolean; isSlow: boolean }

/** The state of each delivery that the dispatcher has in hand, and what follows from all of them together. */
export type DeliveryStates = {
  of(deliveryId: string): DeliveryState | null
  set(delivery: { deliveryId: string; webhookId: string }, state: DeliveryState): void
  remove(deliveryId: string): void
  count(at: 'queued' | 'inline'): number
  /** First attempts of a webhook that are in Temporal. */
  inTemporal(webhookId: string): number
  /** First attempts that wait in Temporal for a worker, those of slow endpoints not counted. */
  waitingInTemporal(): number
  /** Webhooks of slow endpoints with first attempts in Temporal. */
  slowInTemporal(): Set<string>
  /** First attempts that have been in Temporal for so long: they may have ended in another process. */
  inTemporalSince(beforeMs: number): { deliveryId: string; webhookId: string }[]
}

type Entry = { webhookId: string; state: DeliveryState }

export function createDeliveryStates(): DeliveryStates {
  const entries = new Map<string, Entry>()
  const counts = { queued: 0, inline: 0 }
  const perWebhook = new Map<string, number>()
  let waiting = 0

  function add({ webhookId, state }: Entry, by: 1 | -1): void {
    if (state.at !== 'in_temporal') {
      counts[state.at] += by
      return
    }
    const left = (perWebhook.get(webhookId) ?? 0) + by
    if (left === 0) perWebhook.delete(webhookId)
    else perWebhook.set(webhookId, left)
    if (!state.isBegun && !state.isSlow) waiting += by
  }

  function remove(deliveryId: string): void {
    const entry = entries.get(deliveryId)
    if (entry === undefined) return
    entries.delete(deliveryId)
    add(entry, -1)
  }

  return {
    of: (deliveryId) => entries.get(deliveryId)?.state ?? null,
    set({ deliveryId, webhookId }, state) {
      remove(deliveryId)
      const entry = { webhookId, state }
      entries.set(deliveryId, entry)
      add(entry, 1)
    },
    remove,
    count: (at) => counts[at],
    inTemporal: (webhookId) => perWebhook.get(webhookId) ?? 0,
    waitingInTemporal: () => waiting,
    slowInTemporal: () =>
      new Set(
        [...entries.values()].flatMap(({ webhookId, state }) =>
          state.at === 'in_temporal' && state.isSlow ? [webhookId] : [],
        ),
      ),
    inTemporalSince: (beforeMs) =>
      [...entries].flatMap(([deliveryId, { webhookId, state }]) =>
        state.at === 'in_temporal' && state.sinceMs <= beforeMs ? [{ deliveryId, webhookId }] : [],
      ),
  }
}

/** Where a delivery in the dispatcher is. */
export type DeliveryState =
  /** In a queue of this process. */
  | { at: 'queued' }
  /** In flight in this process, without a workflow. */
  | { at: 'inline' }
  /**
   * With its workflow, for the first attempt, since `sinceMs`. `isBegun`: a worker of this process makes it. `isSlow`: it
   * is on the task queue of slow endpoints, where waiting does not mean that Temporal is behind.
   */
  | { at: 'in_temporal'; sinceMs: number; isBegun: boolean; isSlow: boolean }

/** The state of each delivery in the dispatcher, and counts over all of them. */
export type DeliveryStates = {
  of(deliveryId: string): DeliveryState | null
  set(delivery: { deliveryId: string; webhookId: string }, state: DeliveryState): void
  remove(deliveryId: string): void
  count(at: 'queued' | 'inline'): number
  /** Returns the first attempts of a webhook in Temporal. */
  inTemporal(webhookId: string): number
  /** Returns the first attempts that wait in Temporal for a worker, without those of slow endpoints. */
  waitingInTemporal(): number
  /** Returns the webhooks of slow endpoints with first attempts in Temporal. */
  slowInTemporal(): Set<string>
  /** Returns the first attempts that are in Temporal since `beforeMs` or longer. */
  inTemporalSince(beforeMs: number): { deliveryId: string; webhookId: string }[]
}

type Entry = { webhookId: string; state: DeliveryState }

export function createDeliveryStates(): DeliveryStates {
  const entries = new Map<string, Entry>()
  const counts = { queued: 0, inline: 0 }
  const perWebhook = new Map<string, number>()
  let waiting = 0

  function count({ webhookId, state }: Entry, by: 1 | -1): void {
    if (state.at !== 'in_temporal') {
      counts[state.at] += by
      return
    }
    const total = (perWebhook.get(webhookId) ?? 0) + by
    if (total === 0) perWebhook.delete(webhookId)
    else perWebhook.set(webhookId, total)
    if (!state.isBegun && !state.isSlow) waiting += by
  }

  function remove(deliveryId: string): void {
    const entry = entries.get(deliveryId)
    if (entry === undefined) return
    entries.delete(deliveryId)
    count(entry, -1)
  }

  return {
    of: (deliveryId) => entries.get(deliveryId)?.state ?? null,
    set({ deliveryId, webhookId }, state) {
      remove(deliveryId)
      const entry = { webhookId, state }
      entries.set(deliveryId, entry)
      count(entry, 1)
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

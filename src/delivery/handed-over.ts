/** First attempts that this process gave to the engine and has not seen end. */
export type HandedOver = {
  /** `apart`: on the queue for what may take long, where nothing is said by its waiting. */
  add(webhookId: string, deliveryId: string, apart: boolean): void
  /** An attempt has begun here; one that was not handed over here is no matter. */
  begun(deliveryId: string): void
  /** It has ended here, or the engine did not take it. */
  ended(deliveryId: string): void
  /** How many of a webhook. */
  of(webhookId: string): number
  /** How many have not begun either, those apart not counted. */
  notBegun(): number
  /** Calls `listener` whenever one has ended. */
  onEnded(listener: (webhookId: string) => void): void
  /** Those handed over so long ago or longer: they may have ended in another process. */
  olderThan(ageMs: number): string[]
}

export function createHandedOver(): HandedOver {
  // In the order in which they were handed over.
  const handed = new Map<string, { webhookId: string; atMs: number; isAwaited: boolean }>()
  const perWebhook = new Map<string, number>()
  let waiting = 0
  let notify: (webhookId: string) => void = () => undefined

  function ended(deliveryId: string): void {
    const one = handed.get(deliveryId)
    if (one === undefined) return
    handed.delete(deliveryId)
    if (one.isAwaited) waiting--
    const left = (perWebhook.get(one.webhookId) ?? 1) - 1
    if (left === 0) perWebhook.delete(one.webhookId)
    else perWebhook.set(one.webhookId, left)
    notify(one.webhookId)
  }

  return {
    add(webhookId, deliveryId, apart) {
      if (handed.has(deliveryId)) return
      handed.set(deliveryId, { webhookId, atMs: performance.now(), isAwaited: !apart })
      perWebhook.set(webhookId, (perWebhook.get(webhookId) ?? 0) + 1)
      if (!apart) waiting++
    },
    begun(deliveryId) {
      const one = handed.get(deliveryId)
      if (one?.isAwaited !== true) return
      one.isAwaited = false
      waiting--
    },
    ended,
    of: (webhookId) => perWebhook.get(webhookId) ?? 0,
    notBegun: () => waiting,
    onEnded(listener) {
      notify = listener
    },
    olderThan(ageMs) {
      const before = performance.now() - ageMs
      return [...handed].filter(([, { atMs }]) => atMs <= before).map(([deliveryId]) => deliveryId)
    },
  }
}

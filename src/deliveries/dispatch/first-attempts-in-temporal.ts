import { createTally } from '../../tally.ts'

/** The first attempts that this process has left to workflows, until they begin. */
export type FirstAttemptsInTemporal = {
  /** `isSlow`: on the task queue of slow endpoints, where waiting does not mean that Temporal is behind. */
  add(delivery: { deliveryId: string; webhookId: string }, isSlow: boolean): void
  remove(deliveryId: string): void
  /** Returns those of a webhook. */
  of(webhookId: string): number
  /** Returns those that wait for a worker, without those of slow endpoints. */
  waiting(): number
  /** Returns those that wait for `ms` or longer. Removes those that are left to the sweeper. */
  since(ms: number): { deliveryId: string; webhookId: string }[]
}

/** By then the sweeper has checked the workflow of a delivery that did not begin. */
const TTL_MS = 60_000

export function createFirstAttemptsInTemporal(nowMs: () => number): FirstAttemptsInTemporal {
  const entries = new Map<string, { webhookId: string; isSlow: boolean; sinceMs: number }>()
  const perWebhook = createTally()
  let waiting = 0

  function count(webhookId: string, isSlow: boolean, by: 1 | -1): void {
    perWebhook.add(webhookId, by)
    if (!isSlow) waiting += by
  }

  function remove(deliveryId: string): void {
    const entry = entries.get(deliveryId)
    if (entry === undefined) return
    entries.delete(deliveryId)
    count(entry.webhookId, entry.isSlow, -1)
  }

  return {
    add({ deliveryId, webhookId }, isSlow) {
      remove(deliveryId)
      entries.set(deliveryId, { webhookId, isSlow, sinceMs: nowMs() })
      count(webhookId, isSlow, 1)
    },
    remove,
    of: (webhookId) => perWebhook.of(webhookId),
    waiting: () => waiting,
    since(ms) {
      const old: { deliveryId: string; webhookId: string }[] = []
      for (const [deliveryId, { webhookId, sinceMs }] of entries) {
        const ageMs = nowMs() - sinceMs
        if (ageMs >= TTL_MS) remove(deliveryId)
        else if (ageMs >= ms) old.push({ deliveryId, webhookId })
      }
      return old
    },
  }
}

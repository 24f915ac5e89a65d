import { LRUCache } from 'lru-cache'

/** Which webhooks were changed through this process lately. */
export type WebhookChanges = {
  /** Called when a member has changed, disabled or deleted the webhook. */
  changed(webhookId: string): void
  /** True when the webhook was changed after `readAtMs`, on `performance.now()`. */
  hasChangedSince(webhookId: string, readAtMs: number): boolean
}

/** Far more than are changed while a claimed delivery waits. */
const MAX_CHANGES = 10_000

export function createWebhookChanges(): WebhookChanges {
  const changedAtMs = new LRUCache<string, number>({ max: MAX_CHANGES })
  return {
    changed: (webhookId) => void changedAtMs.set(webhookId, performance.now()),
    hasChangedSince: (webhookId, readAtMs) => (changedAtMs.get(webhookId) ?? -Infinity) >= readAtMs,
  }
}

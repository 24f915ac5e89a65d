/** Which webhooks were changed through this process lately. */
export type WebhookChanges = {
  /** Called when a member has changed, disabled or deleted the webhook. */
  changed(webhookId: string): void
  /** True when the webhook was changed after `readAtMs`, on `performance.now()`. */
  hasChangedSince(webhookId: string, readAtMs: number): boolean
}

/** By then every delivery in memory was read after the change. */
const CHANGE_TTL_MS = 60_000

export function createWebhookChanges(): WebhookChanges {
  // In the order of the changes.
  const changedAtMs = new Map<string, number>()
  return {
    changed(webhookId) {
      const now = performance.now()
      for (const [id, atMs] of changedAtMs) {
        if (now - atMs < CHANGE_TTL_MS) break
        changedAtMs.delete(id)
      }
      changedAtMs.delete(webhookId)
      changedAtMs.set(webhookId, now)
    },
    hasChangedSince: (webhookId, readAtMs) => (changedAtMs.get(webhookId) ?? -Infinity) >= readAtMs,
  }
}

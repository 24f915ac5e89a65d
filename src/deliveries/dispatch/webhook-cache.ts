import type { DataSource } from 'typeorm'
import { findTarget, type Target } from '../../db/queries/webhooks.ts'

/** The target of a webhook, read at `readAtMs` on `performance.now()`; null when it takes no deliveries. */
type CachedWebhook = { target: Target | null; readAtMs: number }

/** Caches webhooks, and which of them were changed through this process. */
export type WebhookCache = {
  /** Returns the webhook as it was at most WEBHOOK_TTL_MS ago; concurrent callers share one query. */
  get(organisationId: string, webhookId: string): Promise<CachedWebhook>
  /** Called when a member has changed, disabled or deleted the webhook. */
  invalidate(webhookId: string): void
  /** True when the webhook was invalidated after `readAtMs`. */
  hasChangedSince(webhookId: string, readAtMs: number): boolean
}

export const WEBHOOK_TTL_MS = 1_000

/** By then every delivery in memory was read after the change. */
const CHANGE_TTL_MS = 60_000

/** Above this, expired webhooks are dropped. */
const MAX_WEBHOOKS = 1_000

export function createWebhookCache(dataSource: DataSource): WebhookCache {
  const known = new Map<string, { readAtMs: number; webhook: Promise<CachedWebhook> }>()
  // In the order of the changes.
  const changedAtMs = new Map<string, number>()

  async function read(organisationId: string, webhookId: string, readAtMs: number): Promise<CachedWebhook> {
    try {
      return { target: await findTarget(dataSource, organisationId, webhookId), readAtMs }
    } catch (error) {
      known.delete(webhookId)
      throw error
    }
  }

  return {
    get(organisationId, webhookId) {
      const now = performance.now()
      const last = known.get(webhookId)
      if (last !== undefined && now - last.readAtMs < WEBHOOK_TTL_MS) return last.webhook
      if (known.size > MAX_WEBHOOKS)
        for (const [id, { readAtMs }] of known) if (now - readAtMs >= WEBHOOK_TTL_MS) known.delete(id)
      const webhook = read(organisationId, webhookId, now)
      known.set(webhookId, { readAtMs: now, webhook })
      return webhook
    },
    invalidate(webhookId) {
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

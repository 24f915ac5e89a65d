import type { DataSource } from 'typeorm'
import { findTarget, type Target } from '../db/queries/webhooks.ts'

/** Where a webhook's deliveries go, as it was read at `readAtMs` on `performance.now()`; null when it takes none. */
type WebhookSnapshot = { target: Target | null; readAtMs: number }

export type WebhookSnapshots = {
  /** Not older than `maxAgeMs`; of many who ask at the same time one asks the database. */
  get(organisationId: string, webhookId: string): Promise<WebhookSnapshot>
}

/** Snapshots too old to be believed are dropped when there are more than this. */
const SWEEP_ABOVE = 1_000

export function createWebhookSnapshots(dataSource: DataSource, maxAgeMs: number): WebhookSnapshots {
  const known = new Map<string, { askedAtMs: number; snapshot: Promise<WebhookSnapshot> }>()

  async function ask(organisationId: string, webhookId: string, readAtMs: number): Promise<WebhookSnapshot> {
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
      if (last !== undefined && now - last.askedAtMs < maxAgeMs) return last.snapshot
      if (known.size > SWEEP_ABOVE)
        for (const [id, { askedAtMs }] of known) if (now - askedAtMs >= maxAgeMs) known.delete(id)
      const snapshot = ask(organisationId, webhookId, now)
      known.set(webhookId, { askedAtMs: now, snapshot })
      return snapshot
    },
  }
}

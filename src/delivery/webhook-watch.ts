/**
 * What this process sees of webhooks: how their endpoints answered lately, and which webhooks were changed here.
 * Times are of `performance.now()`.
 */
export type WebhookWatch = {
  /** A POST begins; the function returned is called with its answer, or null when it ended without an outcome. */
  begin(webhookId: string): (answer: { succeeded: boolean; durationMs: number } | null) => void
  inFlight(webhookId: string): number
  /** Its endpoint is not slow, and has not failed since `readAtMs`, when the database knew of no open incident. */
  isWell(webhookId: string, readAtMs: number): boolean
  /**
   * What a POST to it takes: as the last one that ended, or as long as one has been under way by now; `unansweredMs`
   * where none has ended lately, and 0 where there was none.
   */
  takesMs(webhookId: string, unansweredMs: number): number
  /** A member has just changed, disabled or deleted it by this process. */
  changed(webhookId: string): void
  hasChangedSince(webhookId: string, readAtMs: number): boolean
}

type Seen = {
  begunAtMs: Set<{ atMs: number }>
  failedAtMs: number
  slowAtMs: number
  lastAtMs: number
  lastMs: number
}

/** An endpoint that takes longer is slow. */
const SLOW_MS = 1_000

/** So long a slow answer counts, when no quick one has come since. */
const SLOW_FOR_MS = 60_000

/** A change is older than all that is still in memory after that. */
const REMEMBER_CHANGES_MS = 60_000

/** Webhooks of which nothing was seen lately are forgotten when there are more than this. */
const MOST_SEEN = 10_000

export function createWebhookWatch(): WebhookWatch {
  const seen = new Map<string, Seen>()
  const changes = new Map<string, number>()

  function look(webhookId: string): Seen {
    const known = seen.get(webhookId)
    if (known !== undefined) return known
    if (seen.size >= MOST_SEEN) forgetIdle(seen)
    const fresh: Seen = {
      begunAtMs: new Set(),
      failedAtMs: -1,
      slowAtMs: -Infinity,
      lastAtMs: -Infinity,
      lastMs: 0,
    }
    seen.set(webhookId, fresh)
    return fresh
  }

  return {
    begin(webhookId) {
      const webhook = look(webhookId)
      const post = { atMs: performance.now() }
      webhook.begunAtMs.add(post)
      return (answer) => {
        webhook.begunAtMs.delete(post)
        if (answer === null) return
        webhook.lastAtMs = performance.now()
        webhook.lastMs = answer.durationMs
        if (!answer.succeeded) webhook.failedAtMs = webhook.lastAtMs
        webhook.slowAtMs = answer.durationMs > SLOW_MS ? webhook.lastAtMs : -Infinity
      }
    },
    inFlight: (webhookId) => seen.get(webhookId)?.begunAtMs.size ?? 0,
    isWell(webhookId, readAtMs) {
      const webhook = seen.get(webhookId)
      if (webhook === undefined) return true
      const now = performance.now()
      // In the order in which they began.
      const [oldest] = webhook.begunAtMs
      if (oldest !== undefined && now - oldest.atMs > SLOW_MS) return false
      return webhook.failedAtMs < readAtMs && now - webhook.slowAtMs > SLOW_FOR_MS
    },
    takesMs(webhookId, unansweredMs) {
      const webhook = seen.get(webhookId)
      if (webhook === undefined) return 0
      const now = performance.now()
      const [oldest] = webhook.begunAtMs
      const ended = now - webhook.lastAtMs < SLOW_FOR_MS ? webhook.lastMs : unansweredMs
      return oldest === undefined ? ended : Math.max(ended, now - oldest.atMs)
    },
    changed(webhookId) {
      const now = performance.now()
      // In the order in which they came.
      for (const [id, atMs] of changes) {
        if (now - atMs < REMEMBER_CHANGES_MS) break
        changes.delete(id)
      }
      changes.delete(webhookId)
      changes.set(webhookId, now)
    },
    hasChangedSince: (webhookId, readAtMs) => (changes.get(webhookId) ?? -1) >= readAtMs,
  }
}

function forgetIdle(seen: Map<string, Seen>): void {
  const before = performance.now() - SLOW_FOR_MS
  for (const [id, { begunAtMs, lastAtMs }] of seen)
    if (begunAtMs.size === 0 && lastAtMs < before) seen.delete(id)
}

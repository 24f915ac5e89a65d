import type { DataSource, EntityManager } from 'typeorm'
import { createKeyedLimiter, type KeyedLimiter } from './keyed-limiter.ts'
import { createSemaphore } from './semaphore.ts'

/**
 * For transactions that may wait for a row of their webhook: without limits, the many deliveries of one endpoint that
 * fails or recovers, and the many requests about it, would fill the pool with connections that wait for each other.
 */
export type WebhookLocks = {
  /** For attempts that may resolve a delivery, which locks the incident alone. */
  resolving: KeyedLimiter
  /** For attempts that failed, which share its lock. */
  failing: KeyedLimiter
  /** For what members ask for: its transactions wait for the same locks. */
  commands: KeyedLimiter
}

/** Failures of one webhook that are recorded at once: they share its incident's lock, and commit together. */
const CONCURRENT_FAILURES = 4

/** A request waits no longer than this to begin: with the time limit of locks it is answered within ten seconds. */
const COMMAND_MAX_WAIT_MS = 3_000

/**
 * All webhooks together take half of the pool for outcomes and a quarter for commands, so that one quarter at least is
 * left to publishing whatever is locked.
 */
export function createWebhookLocks(poolSize = 20): WebhookLocks {
  const share = (part: number): number => Math.max(1, Math.floor(poolSize * part))
  const outcomes = createSemaphore(share(1 / 2))
  return {
    resolving: createKeyedLimiter({ perKey: 1, total: outcomes, maxWaitMs: null }),
    failing: createKeyedLimiter({
      perKey: Math.min(CONCURRENT_FAILURES, share(1 / 5)),
      total: outcomes,
      maxWaitMs: null,
    }),
    commands: createKeyedLimiter({
      perKey: 1,
      total: createSemaphore(share(1 / 4)),
      maxWaitMs: COMMAND_MAX_WAIT_MS,
    }),
  }
}

/** Runs a command's transaction that may wait for the locks of a webhook. */
export function transactOnWebhook<T>(
  { dataSource, locks }: { dataSource: DataSource; locks: Pick<WebhookLocks, 'commands'> },
  webhookId: string,
  work: (manager: EntityManager) => Promise<T>,
): Promise<T> {
  return locks.commands.take(webhookId, () => dataSource.transaction(work))
}

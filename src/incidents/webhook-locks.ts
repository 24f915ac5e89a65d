import pLimit, { type LimitFunction } from 'p-limit'
import type { DataSource, EntityManager } from 'typeorm'
import { DatabaseUnavailableError, isLockTimeout } from '../db/connection-errors.ts'
import { lockWebhook } from '../db/queries/webhooks.ts'
import { createKeyedLimiter, type KeyedLimiter } from './keyed-limiter.ts'

/**
 * Limits the transactions of this process that may wait for the lock of a webhook: otherwise they would fill the pool
 * with connections that wait for each other.
 */
export type WebhookLocks = {
  /** For the outcomes of attempts, which one transaction of a webhook at a time records. */
  outcomes: LimitFunction
  /** For the requests of members, of each webhook one at a time. They do not queue behind outcomes. */
  commands: KeyedLimiter
}

/** With the time limit of locks, a request is answered within ten seconds. */
const COMMAND_TIMEOUT_MS = 3_000

/** Outcomes take half of the pool, commands a quarter. At least a quarter is left to publishing, whatever is locked. */
export function createWebhookLocks(poolSize = 20): WebhookLocks {
  const share = (part: number): number => Math.max(1, Math.floor(poolSize * part))
  return {
    outcomes: pLimit(share(1 / 2)),
    commands: createKeyedLimiter({ total: share(1 / 4), timeoutMs: COMMAND_TIMEOUT_MS }),
  }
}

/** What a command needs to run under the lock of a webhook. */
export type CommandDependencies = { dataSource: DataSource; locks: Pick<WebhookLocks, 'commands'> }

/** Runs a command's transaction under the lock of a webhook. */
export function transactOnWebhook<T>(
  { dataSource, locks }: CommandDependencies,
  webhookId: string,
  work: (manager: EntityManager) => Promise<T>,
): Promise<T> {
  return locks.commands(webhookId, () => transactUnderLock(dataSource, webhookId, work))
}

/** Runs a transaction that records the outcome of an attempt under the lock of its webhook. */
export function recordOnWebhook<T>(
  { dataSource, locks }: { dataSource: DataSource; locks: Pick<WebhookLocks, 'outcomes'> },
  webhookId: string,
  work: (manager: EntityManager) => Promise<T>,
): Promise<T> {
  return locks.outcomes(() => transactUnderLock(dataSource, webhookId, work))
}

function transactUnderLock<T>(
  dataSource: DataSource,
  webhookId: string,
  work: (manager: EntityManager) => Promise<T>,
): Promise<T> {
  return dataSource.transaction(async (manager) => {
    await lockWebhook(manager, webhookId).catch((error: unknown) => {
      // For all that wait for this lock: nothing is gained by waiting for it again one by one.
      throw isLockTimeout(error)
        ? new DatabaseUnavailableError('the webhook is locked', { cause: error })
        : error
    })
    return work(manager)
  })
}

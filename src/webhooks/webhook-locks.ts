import { LRUCache } from 'lru-cache'
import { setTimeout as delay } from 'node:timers/promises'
import pLimit, { type LimitFunction } from 'p-limit'
import type { DataSource, EntityManager } from 'typeorm'
import { WebhookLockedError } from '../db/connection/connection-errors.ts'
import { lockWebhookWithin, requireWebhook, tryLockWebhook, type WebhookRow } from '../db/queries/webhooks.ts'
import type { Actor } from '../domain/actor.ts'

type Work<T> = (manager: EntityManager) => Promise<T>

/** `organisationId`: given for a command that may change any number of rows. */
type OfWebhook = { webhookId: string; organisationId?: string }

type Transaction<T> = OfWebhook & {
  dataSource: DataSource
  work: Work<T>
  /** Called when the lock is granted. */
  mayBegin: () => boolean
}

/** The transactions of this process that take the lock of a webhook. */
export type WebhookLocks = {
  /**
   * Runs `work` in a transaction under the lock of the webhook, after those of the same webhook that came before.
   * Rejects with WebhookLockedError, and never runs `work`, if it has not begun within `timeoutMs`: that of a command
   * unless given.
   */
  transact<T>(dataSource: DataSource, of: OfWebhook, work: Work<T>, timeoutMs?: number): Promise<T>
}

/** With the time limit of its statements, a request is answered within ten seconds. */
const COMMAND_TIMEOUT_MS = 5_000

/** How long a transaction waits in PostgreSQL's queue: longer than a few others before it hold the lock. */
const QUEUE_TIMEOUT_MS = 250

/** Further tries for each one that may queue: a lock that was not granted in time is held for long. */
const TRIES_PER_QUEUEING = 4

const INITIAL_PAUSE_MS = 25
const MAX_PAUSE_MS = 1_000

/**
 * Of a webhook one transaction at a time runs, in order; of all webhooks so many that a quarter of the pool is left to
 * publishing. Those of one organisation that change any number of rows, and may take a minute, get a fifth of the pool.
 * A lock that another process holds is tried again after growing pauses, during which nothing is held: any number of
 * locked webhooks delays no other. A fifth of the pool may queue for a moment instead, since PostgreSQL grants the lock
 * in order, and not to those that only try, while several processes record outcomes of one webhook.
 */
export function createWebhookLocks(poolSize = 20): WebhookLocks {
  const share = (part: number): number => Math.max(1, Math.floor(poolSize * part))
  const transactions = pLimit(share(3 / 4))
  const maxQueueing = share(1 / 5)
  const webhooks = createPlaces(1)
  const organisations = createPlaces(share(1 / 5))
  let queueing = 0

  async function queue(manager: EntityManager, webhookId: string): Promise<boolean> {
    if (queueing >= maxQueueing) return false
    queueing++
    try {
      return await lockWebhookWithin(manager, webhookId, QUEUE_TIMEOUT_MS)
    } finally {
      queueing--
    }
  }

  /** Null if the lock was not granted, or `mayBegin` is false when it is. */
  function tryOnce<T>(
    { dataSource, webhookId, work, mayBegin }: Transaction<T>,
    mayQueue: boolean,
  ): Promise<{ value: T } | null> {
    return dataSource.transaction(async (manager) => {
      const isLocked =
        (await tryLockWebhook(manager, webhookId)) || (mayQueue && (await queue(manager, webhookId)))
      return isLocked && mayBegin() ? { value: await work(manager) } : null
    })
  }

  async function tryInPlace<T>(transaction: Transaction<T>, mayQueue: boolean): Promise<{ value: T } | null> {
    const inPlace = () => transactions(tryOnce<T>, transaction, mayQueue)
    const { organisationId } = transaction
    return organisationId === undefined ? inPlace() : organisations(organisationId, inPlace)
  }

  return {
    transact: (dataSource, of, work, timeoutMs = COMMAND_TIMEOUT_MS) =>
      new Promise((resolve, reject) => {
        let hasTimedOut = false
        let timer: NodeJS.Timeout
        const timedOut = new Promise<void>((end) => {
          timer = setTimeout(() => {
            hasTimedOut = true
            reject(new WebhookLockedError(`the webhook was locked for ${timeoutMs} ms`))
            end()
          }, timeoutMs)
        })
        const mayBegin = (): boolean => {
          clearTimeout(timer)
          return !hasTimedOut
        }
        const tryUntilLocked = async (): Promise<void> => {
          for (let tries = 0; !hasTimedOut; tries++) {
            const mayQueue = tries % TRIES_PER_QUEUEING === 0
            const ended = await tryInPlace({ ...of, dataSource, work, mayBegin }, mayQueue)
            if (ended !== null) {
              resolve(ended.value)
              return
            }
            await delay(pauseMs(tries))
          }
        }
        // One that timed out before it got a place does not hold up its webhook until there is one.
        webhooks(of.webhookId, () => Promise.race([tryUntilLocked(), timedOut])).catch((error: unknown) => {
          clearTimeout(timer)
          reject(error)
        })
      }),
  }
}

/** Returns what runs work of one key in order, `count` at a time. */
function createPlaces(count: number): <T>(key: string, work: () => Promise<T>) => Promise<T> {
  const limits = new Map<string, LimitFunction>()
  return (key, work) => {
    const limit = limits.get(key) ?? pLimit(count)
    limits.set(key, limit)
    return limit(async () => {
      try {
        return await work()
      } finally {
        if (limit.activeCount === 1 && limit.pendingCount === 0) limits.delete(key)
      }
    })
  }
}

/** Doubled with each try; the random part keeps processes apart that found the lock taken at the same time. */
function pauseMs(tries: number): number {
  return Math.min(MAX_PAUSE_MS, INITIAL_PAUSE_MS * 2 ** tries) * (1 / 2 + Math.random() / 2)
}

/** What a command needs to run under the lock of a webhook. */
export type CommandDependencies = { dataSource: DataSource; locks: WebhookLocks }

/** Runs a command's transaction under the lock of a webhook. */
export function transactOnWebhook<T>(
  { dataSource, locks }: CommandDependencies,
  webhookId: string,
  work: Work<T>,
  timeoutMs?: number,
): Promise<T> {
  return locks.transact(dataSource, { webhookId }, work, timeoutMs)
}

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

/**
 * Runs a command's transaction under the lock of a webhook of the actor's organisation, with the webhook as it is under
 * the lock. The organisation is checked before the lock too: a caller that waits for the lock of another organisation's
 * webhook learns that it exists, and takes a place in the queue of those that may. Throws 404 where there is none.
 */
export async function transactOnOwn<T>(
  { dataSource, locks }: CommandDependencies,
  { organisationId }: Pick<Actor, 'organisationId'>,
  id: string,
  work: (manager: EntityManager, webhook: WebhookRow) => Promise<T>,
): Promise<T> {
  await requireWebhook(dataSource, organisationId, id)
  const workOnOwn = async (manager: EntityManager) =>
    work(manager, await requireWebhook(manager, organisationId, id))
  return locks.transact(dataSource, { webhookId: id, organisationId }, workOnOwn)
}

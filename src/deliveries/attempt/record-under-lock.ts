import { LRUCache } from 'lru-cache'
import type { DataSource } from 'typeorm'
import { createBatchedStatement, type BatchedStatement } from '../../db/connection/batched-statement.ts'
import { recordAttempts, type EndedAttempt, type RecordedAttempt } from './record-attempts.ts'
import type { FollowAfter } from '../protocol/record-attempts.ts'
import { recordOnWebhook, type WebhookLocks } from '../../webhooks/webhook-locks.ts'

/** `dueInMs` is called when the statement is sent. */
type AttemptToRecord = Omit<EndedAttempt, 'dueInMs'> & {
  webhookId: string
  dueInMs: () => number | null
}

/** Records an attempt under the lock of its webhook. */
export type RecordUnderLock = BatchedStatement<AttemptToRecord, RecordedAttempt>

const NOTHING: RecordedAttempt = { result: null, toSignal: null }

/** Attempts of one transaction, at maxBatchSize: a request that waits for the lock waits for all of them. */
const MAX_BATCH = 25

/** Webhooks whose attempts are recorded at the same time. */
const MAX_WEBHOOKS = 1_000

/** Meanwhile the lease of the row is renewed: giving up sooner would only repeat what may be committed. */
const RECORD_TIMEOUT_MS = 600_000

/**
 * Attempts of one webhook that wait for its lock share a transaction: an endpoint that fails or recovers ends attempts
 * faster than a disk commits them one by one. `followAfterMs`: see FollowAfter.
 */
export function createRecordUnderLock(dependencies: {
  dataSource: DataSource
  locks: WebhookLocks
  followAfterMs: FollowAfter
}): RecordUnderLock {
  // One that is forgotten in use goes on: the transactions of a webhook run one after the other anyway.
  const batches = new LRUCache<string, RecordUnderLock, AttemptToRecord>({
    max: MAX_WEBHOOKS,
    memoMethod: (webhookId, _, { context }) =>
      createBatch({ organisationId: context.organisationId, webhookId }),
  })

  function createBatch(of: { organisationId: string; webhookId: string }): RecordUnderLock {
    const recordAll = (attempts: AttemptToRecord[]): Promise<RecordedAttempt[]> =>
      recordOnWebhook(dependencies, of.webhookId, (manager) => {
        const ended = attempts.map(({ dueInMs, ...attempt }) => ({ ...attempt, dueInMs: dueInMs() }))
        return recordAttempts(manager, of, ended, dependencies.followAfterMs)
      })
    return createBatchedStatement({
      runAll: recordAll,
      runOne: async (attempt) => (await recordAll([attempt]))[0] ?? NOTHING,
      maxConcurrent: 1,
      maxBatchSize: MAX_BATCH,
      timeoutMs: RECORD_TIMEOUT_MS,
    })
  }

  return (attempt) => batches.memo(attempt.webhookId, { context: attempt })(attempt)
}

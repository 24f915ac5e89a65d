import { LRUCache } from 'lru-cache'
import type { DataSource, EntityManager } from 'typeorm'
import { createBatchedStatement, type BatchedStatement } from '../../db/connection/database-queues.ts'
import {
  type FollowAfter,
  recordFailures,
  recordSuccesses,
  type FailedAttempt,
  type RecordedFailure,
  type RecordedSuccess,
} from '../protocol/record-attempts.ts'
import { transactOnWebhook, type WebhookLocks } from '../../webhooks/webhook-locks.ts'
import { closeResolvedIncident, openIncident } from '../../db/queries/incidents.ts'
import { isTimeout } from '../../domain/attempt-outcome.ts'
import type { IncidentLabel } from '../../domain/workflow-inputs.ts'
import { newId } from '../../ids.ts'
import type { Changed } from '../../incidents/evaluate-notifications.ts'

/** `dueInMs` is called when the statement is sent. */
type AttemptToRecord = Omit<EndedAttempt, 'dueInMs'> & {
  webhookId: string
  dueInMs: () => number | null
}

/** Records an attempt under the lock of its webhook. */
export type RecordUnderLock = BatchedStatement<AttemptToRecord, RecordedAttempt>

/** Attempts of one transaction, at maxBatchSize: a request that waits for the lock waits for all of them. */
const MAX_BATCH = 25

/** Webhooks whose attempts are recorded at the same time. */
const MAX_WEBHOOKS = 1_000

/** After this time an outcome that waits for a lock is logged and counted. It is kept, and tried again. */
const LOCK_TIMEOUT_MS = 10_000

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
    const runAll = (attempts: AttemptToRecord[]): Promise<RecordedAttempt[]> => {
      const work = (manager: EntityManager): Promise<RecordedAttempt[]> => {
        const ended = attempts.map(({ dueInMs, ...attempt }) => ({ ...attempt, dueInMs: dueInMs() }))
        return recordAttempts(manager, of, ended, dependencies.followAfterMs)
      }
      return transactOnWebhook(dependencies, of.webhookId, work, LOCK_TIMEOUT_MS)
    }
    return createBatchedStatement({
      runAll,
      maxConcurrent: 1,
      maxBatchSize: MAX_BATCH,
      timeoutMs: RECORD_TIMEOUT_MS,
    })
  }

  return (attempt) => batches.memo(attempt.webhookId, { context: attempt })(attempt)
}

/** An attempt, and what follows it where its webhook still takes such deliveries. */
export type EndedAttempt = Omit<FailedAttempt, 'next'> & { next: 'completed' | FailedAttempt['next'] }

/** `result` is null where there was nothing to record: see `recordSuccesses` and `recordFailures`. */
export type RecordedAttempt = Changed<RecordedSuccess | RecordedFailure | null>

/**
 * Records attempts of one webhook. Failures that leave a delivery waiting or failed open its incident or update the open
 * one. Successes, and the end of what is erased, close it if no delivery is left unresolved. The attempt that changed the incident has it to signal. The
 * caller holds the lock of the webhook.
 */
export async function recordAttempts(
  manager: EntityManager,
  of: { organisationId: string; webhookId: string },
  attempts: readonly EndedAttempt[],
  followAfterMs: FollowAfter,
): Promise<RecordedAttempt[]> {
  // Failures first: what they leave unresolved keeps the incident open.
  const failing = attempts.filter(hasFailed)
  const failures = await recordFailures(manager, failing, followAfterMs)
  const changing = failing.filter((_, index) => failures[index]?.changesIncident === true)
  const isExhausted = failures.some(
    (failure) => failure?.changesIncident === true && failure.state === 'failed',
  )
  const opened =
    changing.length === 0 ? null : await openIncident(manager, { id: newId(), ...of }, isExhausted)

  const succeeding = attempts.filter((attempt) => !hasFailed(attempt))
  const successes = await recordSuccesses(manager, succeeding, followAfterMs)
  const resolving =
    succeeding.find((_, index) => successes[index]?.isCounted === true) ??
    failing.find((_, index) => failures[index]?.isErased === true)
  const closed = resolving === undefined ? null : await closeResolvedIncident(manager, of)

  // Time-outs leave the signal to the sweeper: another failure sends it at once.
  const opening = changing.find(({ failureCode }) => !isTimeout(failureCode)) ?? changing[0]
  const changedBy = closed === null ? opening : resolving
  const signals = new Map<EndedAttempt | undefined, IncidentLabel | null>([[changedBy, closed ?? opened]])
  const results = new Map<EndedAttempt, RecordedAttempt['result']>()
  failing.forEach((attempt, index) => results.set(attempt, failures[index] ?? null))
  succeeding.forEach((attempt, index) => results.set(attempt, successes[index] ?? null))
  return attempts.map((attempt) => ({
    result: results.get(attempt) ?? null,
    toSignal: signals.get(attempt) ?? null,
  }))
}

function hasFailed(attempt: EndedAttempt): attempt is FailedAttempt {
  return attempt.next !== 'completed'
}

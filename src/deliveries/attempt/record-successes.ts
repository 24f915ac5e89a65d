import type { DataSource } from 'typeorm'
import { createBatchedStatement, type BatchedStatement } from '../../db/batched-statement.ts'
import { recordFirstSuccesses, type AttemptRecord, type FollowAfter } from '../protocol/record-attempts.ts'

/** Records a first attempt that succeeded. False if that takes the lock of its webhook, or another one is recorded. */
export type RecordFirstSuccess = BatchedStatement<AttemptRecord, boolean>

/** Statements in flight at once, and successes of one statement, at most. */
const MAX_CONCURRENT_BATCHES = 4
const MAX_BATCH_SIZE = 100

/**
 * How long a success waits for others, so that they share a commit and the publishers' commits go first. For so much
 * longer the POST would be made again if this process were killed.
 */
const LINGER_MS = 5

/** Successes that come close together share a statement and its commit. */
export function createRecordFirstSuccess(
  dataSource: DataSource,
  { followAfterMs }: { followAfterMs: FollowAfter },
): RecordFirstSuccess {
  return createBatchedStatement({
    runAll: (records) => recordFirstSuccesses(dataSource, records, followAfterMs),
    runOne: async (record) => (await recordFirstSuccesses(dataSource, [record], followAfterMs))[0] === true,
    maxConcurrent: MAX_CONCURRENT_BATCHES,
    maxBatchSize: MAX_BATCH_SIZE,
    lingerMs: LINGER_MS,
  })
}

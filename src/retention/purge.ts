import type { DataSource } from 'typeorm'
import type { PurgeInput, PurgeResult } from '../domain/workflow-inputs.ts'
import {
  FROM_THE_OLDEST,
  purgeAudit,
  purgeDeliveries,
  purgeEvents,
  purgeIdempotencyKeys,
  purgeIncidents,
  purgeRetryJobs,
  type PurgeCursor,
} from '../db/queries/retention.ts'
import { transactLonger } from '../db/connection/database-client.ts'
import { retryWhileUnavailable } from '../db/connection/connection-errors.ts'
import type { Logger } from '../observability/logger.ts'

export type PurgeDependencies = { dataSource: DataSource; logger: Logger }

/** Rows of one transaction, so that no lock lasts long. */
const BATCH_ROWS = 1_000

/** The next run of the schedule deletes the rest. */
const PASS_TIMEOUT_MS = 10 * 60_000

/** The cursor of the next batch; null when nothing is left. */
type NextCursor = PurgeCursor | null

type Deleted = Partial<Omit<PurgeResult, 'finished'>>

/** Deletes one batch. */
type Step = (after: PurgeCursor) => Promise<Deleted & { next: NextCursor }>

/**
 * Deletes rows that are older than their limit (`docs/production.md`, Retention), in batches, until nothing is left or the
 * time limit is reached. Concurrent runs are harmless. Rejects when `signal` aborts; deleted rows stay deleted.
 */
export async function purge(
  { dataSource, logger }: PurgeDependencies,
  limits: PurgeInput,
  signal: AbortSignal,
  passTimeoutMs = PASS_TIMEOUT_MS,
): Promise<PurgeResult> {
  const deadline = performance.now() + passTimeoutMs
  const result: PurgeResult = {
    deliveries: 0,
    events: 0,
    incidents: 0,
    auditEntries: 0,
    retryJobs: 0,
    idempotencyKeys: 0,
    finished: true,
  }
  for (const step of stepsOf(dataSource, limits)) {
    let cursor: NextCursor = FROM_THE_OLDEST
    while (cursor !== null && result.finished) {
      signal.throwIfAborted()
      const after: PurgeCursor = cursor
      const { next, ...deleted } = await retryWhileUnavailable(() => step(after), signal)
      add(result, deleted)
      cursor = next
      result.finished = next === null || performance.now() < deadline
    }
  }
  logger.info({ event: 'retention.purged', ...result }, 'retention.purged')
  return result
}

/** Small tables come first, so that many completed deliveries delay nothing else; events follow their deliveries. */
function stepsOf(dataSource: DataSource, { completedDays, failedDays, auditDays }: PurgeInput): Step[] {
  const limit = BATCH_ROWS
  const nextAfter = (deleted: number): NextCursor => (deleted < limit ? null : FROM_THE_OLDEST)
  return [
    async () => {
      const idempotencyKeys = await transactLonger(dataSource, (db) => purgeIdempotencyKeys(db, limit))
      return { idempotencyKeys, next: nextAfter(idempotencyKeys) }
    },
    async () => {
      const retryJobs = await transactLonger(dataSource, (db) => purgeRetryJobs(db, limit))
      return { retryJobs, next: nextAfter(retryJobs) }
    },
    async () => {
      const auditEntries = await transactLonger(dataSource, (db) => purgeAudit(db, auditDays, limit))
      return { auditEntries, next: nextAfter(auditEntries) }
    },
    async () => {
      const incidents = await transactLonger(dataSource, (db) => purgeIncidents(db, failedDays, limit))
      return { incidents, next: nextAfter(incidents) }
    },
    (after) => purgeDeliveries(dataSource, 'failed', { days: failedDays, after, limit }),
    (after) => purgeDeliveries(dataSource, 'stopped', { days: failedDays, after, limit }),
    (after) => purgeDeliveries(dataSource, 'completed', { days: completedDays, after, limit }),
    (after) => purgeEvents(dataSource, { days: Math.max(completedDays, failedDays), after, limit }),
  ]
}

function add(result: PurgeResult, deleted: Deleted): void {
  result.deliveries += deleted.deliveries ?? 0
  result.events += deleted.events ?? 0
  result.incidents += deleted.incidents ?? 0
  result.auditEntries += deleted.auditEntries ?? 0
  result.retryJobs += deleted.retryJobs ?? 0
  result.idempotencyKeys += deleted.idempotencyKeys ?? 0
}

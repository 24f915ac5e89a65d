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
import { noteLastSuccesses } from '../db/queries/incidents.ts'
import { transactLonger } from '../db/connection/database-client.ts'
import type { Db } from '../db/connection/db.ts'
import { retryBatch } from '../db/connection/connection-errors.ts'
import type { Logger } from '../observability/logger.ts'

export type PurgeDependencies = { dataSource: DataSource; logger: Logger }

/** Rows of one transaction, so that no lock lasts long. */
const BATCH_ROWS = 1_000

/** Of the 55 minutes of a run of the schedule; the next one, which begins every hour, deletes the rest. */
const PASS_TIMEOUT_MS = 50 * 60_000

/** The cursor of the next batch; null when nothing is left. */
type NextCursor = PurgeCursor | null

type Counts = Omit<PurgeResult, 'finished'>

/** Deletes one batch. */
type Step = (after: PurgeCursor) => Promise<Partial<Counts> & { next: NextCursor }>

/**
 * Deletes rows that are older than their limit (`docs/production.md`, Retention), in batches, until nothing is left or the
 * time limit is reached. Concurrent runs are harmless. A step that fails, or has a statement that takes too long, ends by
 * itself: the others run, then its error is thrown. Rejects when `signal` aborts; deleted rows stay deleted.
 */
export async function purge(
  { dataSource, logger }: PurgeDependencies,
  limits: PurgeInput,
  signal: AbortSignal,
): Promise<PurgeResult> {
  const deadline = performance.now() + PASS_TIMEOUT_MS
  const counts: Counts = {
    deliveries: 0,
    events: 0,
    incidents: 0,
    auditEntries: 0,
    retryJobs: 0,
    idempotencyKeys: 0,
  }
  let finished = true
  const failures: unknown[] = []
  for (const step of stepsOf(dataSource, limits)) {
    let cursor: NextCursor = FROM_THE_OLDEST
    while (cursor !== null && finished) {
      signal.throwIfAborted()
      const after: PurgeCursor = cursor
      try {
        const { next, ...deleted } = await retryBatch(() => step(after), signal)
        for (const name of Object.keys(deleted) as (keyof Counts)[]) counts[name] += deleted[name] ?? 0
        cursor = next
      } catch (error) {
        signal.throwIfAborted()
        failures.push(error)
        cursor = null
      }
      finished = cursor === null || performance.now() < deadline
    }
  }
  const result = { ...counts, finished: finished && failures.length === 0 }
  logger[result.finished ? 'info' : 'warn']({ event: 'retention.purged', ...result })
  if (failures.length > 1) throw new AggregateError(failures, failures.map(String).join('; '))
  if (failures.length > 0) throw failures[0]
  return result
}

/** Small tables come first, so that many completed deliveries delay nothing else; events follow their deliveries. */
function stepsOf(dataSource: DataSource, { completedDays, failedDays, auditDays }: PurgeInput): Step[] {
  const limit = BATCH_ROWS
  const all = (name: keyof Counts, purgeBatch: (db: Db) => Promise<number>): Step => {
    return async () => {
      const count = await transactLonger(dataSource, purgeBatch)
      return { [name]: count, next: count < limit ? null : FROM_THE_OLDEST }
    }
  }
  return [
    all('idempotencyKeys', (db) => purgeIdempotencyKeys(db, limit)),
    all('retryJobs', (db) => purgeRetryJobs(db, limit)),
    all('auditEntries', (db) => purgeAudit(db, auditDays, limit)),
    all('incidents', (db) => purgeIncidents(db, failedDays, limit)),
    (after) => purgeDeliveries(dataSource, 'failed', { days: failedDays, after, limit }),
    (after) => purgeDeliveries(dataSource, 'stopped', { days: failedDays, after, limit }),
    async (after) => {
      if (after === FROM_THE_OLDEST) await transactLonger(dataSource, noteLastSuccesses)
      return purgeDeliveries(dataSource, 'completed', { days: completedDays, after, limit })
    },
    (after) => purgeEvents(dataSource, { days: Math.max(completedDays, failedDays), after, limit }),
  ]
}

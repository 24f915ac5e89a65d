import type { DataSource } from 'typeorm'
import type { PurgeInput, PurgeResult } from '../../workflows/messages.ts'
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
import { transactLonger } from '../db/longer-statements.ts'
import { untilDatabaseAnswers } from '../db/patience.ts'
import type { Logger } from '../logger.ts'

export type PurgeDependencies = { dataSource: DataSource; logger: Logger }

/** Rows of one transaction: few enough to hold no lock for long. */
const BATCH_ROWS = 1_000

/** What is left after that goes at the next run of the schedule. */
const LONGEST_PASS_MS = 10 * 60_000

/** Where the next batch begins; null when nothing is left. */
type Place = PurgeCursor | null

type Deleted = Partial<Omit<PurgeResult, 'finished'>>

/** Deletes one batch. */
type Step = (after: PurgeCursor) => Promise<Deleted & { next: Place }>

/**
 * Deletes what is older than its limit (`docs/production.md`, Retention), batch after batch until nothing is left or
 * the time is up. Two at once are harmless. Rejects when `signal` aborts; what was deleted stays deleted.
 */
export async function purge(
  { dataSource, logger }: PurgeDependencies,
  limits: PurgeInput,
  signal: AbortSignal,
  longestPassMs = LONGEST_PASS_MS,
): Promise<PurgeResult> {
  const deadline = performance.now() + longestPassMs
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
    let place: Place = FROM_THE_OLDEST
    while (place !== null && result.finished) {
      signal.throwIfAborted()
      const after: PurgeCursor = place
      const { next, ...deleted } = await untilDatabaseAnswers(() => step(after), signal)
      add(result, deleted)
      place = next
      result.finished = next === null || performance.now() < deadline
    }
  }
  logger.info({ event: 'retention.purged', ...result }, 'retention.purged')
  return result
}

/** What is few comes first, so that a flood of completed deliveries delays nothing else; events wait for their deliveries. */
function stepsOf(dataSource: DataSource, { completedDays, failedDays, auditDays }: PurgeInput): Step[] {
  const limit = BATCH_ROWS
  const nextAfter = (deleted: number): Place => (deleted < limit ? null : FROM_THE_OLDEST)
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

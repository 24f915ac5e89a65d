// Hand-written: a job counts what it covers, and keeps its progress, in one statement each.
import { EntityManager } from 'typeorm'
import {
  EVERY_DELIVERY,
  NO_FILTER,
  type DeliveryFilter,
  type DeliverySelection,
  type RetryMode,
  type ReplayRange,
} from '../../domain/delivery-filter.ts'
import { sql, type Db, pageOf, type Page } from '../connection/db.ts'
import type { RetryJob, RetryJobWebhook } from '../entities/retry-job.ts'
import { allowLongerStatements } from '../connection/database-client.ts'
import {
  coveredBy,
  IS_SELECTED,
  IS_SUBSCRIBED,
  selectionParameters,
  type RequestedAttempt,
} from './delivery-selection.ts'

/** A retry job as the API shows it (spec 4.2). */
export type RetryJobRow = Pick<RetryJob, 'id' | 'webhookId' | 'createdAt'> &
  RetryJobSums & { mode: RetryMode; state: 'running' | 'done' }

/** Over all webhooks of a job, as {@link RetryJobWebhook} has them of one. */
export type RetryJobSums = Pick<RetryJobWebhook, 'total' | 'done' | 'succeeded' | 'failed'>

/** SQL for the progress of a retry job, over its webhooks. */
export const SUMS = `(
  SELECT coalesce(sum(total), 0)::int AS total, coalesce(sum(done), 0)::int AS done,
         coalesce(sum(succeeded), 0)::int AS succeeded, coalesce(sum(failed), 0)::int AS failed
    FROM retry_job_webhook WHERE job_id = retry_job.id)`

const SELECT_JOB = `SELECT id, mode, webhook_id AS "webhookId", created_at AS "createdAt", state, sums.*
       FROM retry_job CROSS JOIN LATERAL ${SUMS} sums
      WHERE organisation_id = :organisationId AND mode <> 'replay'`

/**
 * Makes a job over the enabled webhooks of the organisation, or the one named, and counts what it covers: deliveries
 * whose event key their webhook is no longer subscribed to are passed over.
 * A job that covers nothing is done at once. The sweep starts its workflow should the caller not come to it.
 */
export async function insertRetryJob(
  db: Db,
  job: {
    id: string
    organisationId: string
    webhookId: string | null
    mode: RetryMode
    selection?: DeliverySelection
    requestedBy: string
  },
): Promise<RetryJobRow> {
  const { id, organisationId, webhookId, mode, selection = EVERY_DELIVERY, requestedBy } = job
  const { filter, deliveryIds } = selection
  const covered = coveredBy(mode).join(' OR ')
  await sql(
    `INSERT INTO retry_job (id, organisation_id, webhook_id, mode, filter, delivery_ids, requested_by, sweep_at)
     VALUES (:id, :organisationId, :webhookId, :mode, :filter::jsonb, :deliveryIds::uuid[], :requestedBy,
             now() + interval '5 seconds')`,
    { id, organisationId, webhookId, mode, filter, deliveryIds, requestedBy },
  ).rows(db)
  // There may be hundreds of thousands to count.
  if (db instanceof EntityManager) await allowLongerStatements(db)
  await sql(
    `INSERT INTO retry_job_webhook (job_id, webhook_id, total)
     SELECT :id, webhook.id, covered.count
       FROM webhook
       CROSS JOIN LATERAL (
         SELECT count(*)::int AS count FROM delivery
          WHERE webhook_id = webhook.id AND (${covered}) AND ${IS_SELECTED} AND ${IS_SUBSCRIBED}
            AND coalesce(completed_at, created_at) <= now()
       ) covered
      WHERE organisation_id = :organisationId AND enabled AND deleted_at IS NULL
        AND (:webhookId::uuid IS NULL OR webhook.id = :webhookId) AND covered.count > 0`,
    { id, organisationId, webhookId, ...selectionParameters(selection) },
  ).rows(db)
  await sql(
    `UPDATE retry_job SET state = 'done', sweep_at = NULL
      WHERE id = :id AND NOT EXISTS (SELECT 1 FROM retry_job_webhook WHERE job_id = :id)`,
    { id },
  ).rows(db)
  const made = await findRetryJob(db, organisationId, id)
  if (made === null) throw new Error('INSERT gave no row')
  return made
}

export async function findRetryJob(db: Db, organisationId: string, id: string): Promise<RetryJobRow | null> {
  return sql(`${SELECT_JOB} AND id = :id`, { organisationId, id }).first(db)
}

/** Returns an organisation's jobs, newest first. */
export async function listRetryJobs(
  db: Db,
  organisationId: string,
  { after, limit }: { after: string | null; limit: number },
): Promise<Page<RetryJobRow>> {
  const found = await sql(
    `${SELECT_JOB} AND (:after::uuid IS NULL OR id < :after) ORDER BY id DESC LIMIT :limit`,
    { organisationId, after, limit: limit + 1 },
  ).rows<RetryJobRow>(db)
  return pageOf(found, limit)
}

/** What a job does: it retries deliveries, or it makes further ones of the events of a replay. */
type Work = { mode: RetryMode; replay: null } | { mode: 'replay'; replay: StoredReplay }

/** A replay as the row has it. `keptDays`: how long the deliveries that `missing` reads are kept. */
export type StoredReplay = Omit<ReplayRange, 'since' | 'until'> & {
  since: string
  until: string
  keptDays: number
  /** False while `total` is the number of events that were counted before the count ended at its bound. */
  isTotalExact: boolean
}

type Place = Pick<RetryJobWebhook, 'done' | 'succeeded' | 'failed' | 'cursor' | 'eventCursor'> & {
  underWay: RequestedAttempt[]
}

/**
 * Where a job stands with one webhook. `isOfAll`: it is of all webhooks of the organisation. `replays`: how many replays
 * to the webhook run, of which this is one; null for another job.
 */
export type RetryPart = Work &
  Place & { replays: number | null; selection: DeliverySelection; isOfAll: boolean }

/** The same, locked until the transaction ends: two runs of one job never take the same page. Null once finished. */
export async function lockRetryPart(
  db: Db,
  part: { organisationId: string; jobId: string; webhookId: string },
): Promise<RetryPart | null> {
  const found = await sql(
    `SELECT mode, replay, filter, delivery_ids AS "deliveryIds", retry_job.webhook_id IS NULL AS "isOfAll",
            progress.done, progress.succeeded, progress.failed, progress.cursor, progress.event_cursor AS "eventCursor", progress.under_way AS ids,
            progress.under_way_numbers AS numbers,
            CASE WHEN mode = 'replay' THEN (
              SELECT count(*)::int FROM retry_job running
               WHERE running.sweep_at IS NOT NULL AND running.organisation_id = :organisationId
                 AND running.webhook_id = :webhookId AND running.mode = 'replay' AND running.state = 'running'
            ) END AS replays
       FROM retry_job_webhook progress JOIN retry_job ON retry_job.id = progress.job_id
      WHERE retry_job.organisation_id = :organisationId AND progress.job_id = :jobId
        AND progress.webhook_id = :webhookId AND NOT progress.finished AND retry_job.state = 'running'
        FOR UPDATE OF progress`,
    { organisationId: part.organisationId, jobId: part.jobId, webhookId: part.webhookId },
  ).first<StoredPart>(db)
  if (found === null) return null
  const { ids, numbers, filter, deliveryIds, ...place } = found
  const selection = { filter: filter === null ? null : withDates(filter), deliveryIds }
  // A job of the version before has no numbers: what it had under way counts as done, and as neither of the others.
  return {
    ...place,
    selection,
    underWay: ids.map((deliveryId, index) => ({ deliveryId, number: numbers[index] ?? 0 })),
  }
}

/** As the row has it: JSON has dates as text. */
type StoredPart = Omit<Place, 'underWay'> &
  Work & {
    replays: number | null
    isOfAll: boolean
    ids: string[]
    numbers: number[]
    filter: StoredFilter | null
    deliveryIds: string[] | null
  }

type Times = 'since' | 'until' | 'attemptedSince' | 'attemptedUntil'
/** A job of the version before lacks the members that are newer. */
type StoredFilter = Partial<Omit<DeliveryFilter, Times> & Record<Times, string | null>>

function withDates(stored: StoredFilter): DeliveryFilter {
  const dateOf = (text: string | null = null): Date | null => (text === null ? null : new Date(text))
  return {
    ...NO_FILTER,
    ...stored,
    since: dateOf(stored.since),
    until: dateOf(stored.until),
    attemptedSince: dateOf(stored.attemptedSince),
    attemptedUntil: dateOf(stored.attemptedUntil),
  }
}

const TOTAL = `greatest(total, :minTotal::int)`

/**
 * Notes where the job stands now. The counts never exceed the total: what was counted when the job was made, or
 * `minTotal` where that is more.
 */
export async function updateRetryPart(
  db: Db,
  { jobId, webhookId }: { jobId: string; webhookId: string },
  place: Place & { minTotal: number; finished: boolean },
): Promise<void> {
  const { done, succeeded, failed, cursor, eventCursor, underWay, minTotal, finished } = place
  const deliveryIds = underWay.map(({ deliveryId }) => deliveryId)
  const numbers = underWay.map(({ number }) => number)
  await sql(
    `UPDATE retry_job_webhook
        SET total = ${TOTAL}, done = CASE WHEN :finished THEN ${TOTAL} ELSE least(${TOTAL}, :done) END,
            succeeded = least(${TOTAL}, :succeeded),
            failed = least(${TOTAL} - least(${TOTAL}, :succeeded), :failed), cursor = :cursor,
            event_cursor = :eventCursor, under_way = :deliveryIds::uuid[],
            under_way_numbers = :numbers::int[], finished = :finished
      WHERE job_id = :jobId AND webhook_id = :webhookId`,
    {
      jobId,
      webhookId,
      done,
      succeeded,
      failed,
      cursor,
      eventCursor,
      minTotal,
      finished,
      deliveryIds,
      numbers,
    },
  ).rows(db)
}

/** Webhooks with which the job is not finished, in the order of their ids. */
export function listUnfinishedWebhooks(db: Db, organisationId: string, jobId: string): Promise<string[]> {
  return sql(
    `SELECT progress.webhook_id AS id
       FROM retry_job_webhook progress JOIN retry_job ON retry_job.id = progress.job_id
      WHERE retry_job.organisation_id = :organisationId AND progress.job_id = :jobId AND NOT progress.finished
        AND retry_job.state = 'running'
      ORDER BY progress.webhook_id`,
    { organisationId, jobId },
  ).ids(db)
}

/** The job is over: whatever it covered has been attempted, or no longer needed it. */
export async function finishRetryJob(db: Db, organisationId: string, jobId: string): Promise<void> {
  await sql(
    `UPDATE retry_job SET state = 'done', sweep_at = NULL WHERE organisation_id = :organisationId AND id = :jobId
        AND state = 'running'`,
    { organisationId, jobId },
  ).rows(db)
}

/** Jobs that may have lost their workflow, taken for a while. */
export async function takeJobsForSweep(
  db: Db,
  limit: number,
): Promise<{ organisationId: string; jobId: string }[]> {
  return sql(
    `WITH due AS (
       SELECT id FROM retry_job WHERE sweep_at < now() ORDER BY sweep_at LIMIT :limit FOR UPDATE SKIP LOCKED
     )
     UPDATE retry_job SET sweep_at = now() + interval '15 seconds' FROM due WHERE retry_job.id = due.id
     RETURNING retry_job.organisation_id AS "organisationId", retry_job.id AS "jobId"`,
    { limit },
  ).rows(db)
}

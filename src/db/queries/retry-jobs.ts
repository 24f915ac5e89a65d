import type { RetryMode } from '../../domain/retry-mode.ts'
import { firstRow, rows, type Db } from '../db.ts'
import { COVERED_BY, type AskedAttempt } from './interventions.ts'
import { isCoveredSql } from './webhooks.ts'

/** A retry job as the API shows it (spec 4.2). */
export type RetryJobRow = {
  id: string
  mode: RetryMode
  webhookId: string | null
  state: 'running' | 'done'
  total: number
  done: number
  /** Of `done`, completed by the attempt of this job. */
  succeeded: number
  /** Of `done`, attempted by this job and not delivered. */
  failed: number
}

const COLUMNS = `j.id, j.mode, j.webhook_id AS "webhookId", j.state, sums.*`

const SUMS = `LATERAL (
  SELECT coalesce(sum(total), 0)::int AS total, coalesce(sum(done), 0)::int AS done,
         coalesce(sum(succeeded), 0)::int AS succeeded, coalesce(sum(failed), 0)::int AS failed
    FROM retry_job_webhook p WHERE p.job_id = j.id) sums`

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
    requestedBy: string
  },
): Promise<RetryJobRow> {
  const covered = COVERED_BY[job.mode].join(' OR ')
  await rows(
    db,
    `INSERT INTO retry_job (id, organisation_id, webhook_id, mode, requested_by, sweep_at)
     VALUES ($1, $2, $3, $4, $5, now() + interval '5 seconds')`,
    [job.id, job.organisationId, job.webhookId, job.mode, job.requestedBy],
  )
  await rows(
    db,
    `INSERT INTO retry_job_webhook (job_id, webhook_id, total)
     SELECT $1, w.id, covered.count
       FROM webhook w
       CROSS JOIN LATERAL (
         SELECT count(*)::int AS count FROM delivery d
          WHERE d.webhook_id = w.id AND (${covered}) AND ${isCoveredSql('d')}
       ) covered
      WHERE w.organisation_id = $2 AND w.enabled AND w.deleted_at IS NULL
        AND ($3::uuid IS NULL OR w.id = $3) AND covered.count > 0`,
    [job.id, job.organisationId, job.webhookId],
  )
  await rows(
    db,
    `UPDATE retry_job SET state = 'done', sweep_at = NULL
      WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM retry_job_webhook WHERE job_id = $1)`,
    [job.id],
  )
  const made = await findRetryJob(db, job.organisationId, job.id)
  if (made === null) throw new Error('INSERT gave no row')
  return made
}

export async function findRetryJob(db: Db, organisationId: string, id: string): Promise<RetryJobRow | null> {
  return firstRow(
    db,
    `SELECT ${COLUMNS} FROM retry_job j CROSS JOIN ${SUMS} WHERE j.organisation_id = $1 AND j.id = $2`,
    [organisationId, id],
  )
}

/** Where a job stands with one webhook. */
export type RetryPart = {
  mode: RetryMode
  done: number
  succeeded: number
  failed: number
  cursor: string | null
  underWay: AskedAttempt[]
}

/** The same, locked until the transaction ends: two runs of one job never take the same page. Null once finished. */
export async function lockRetryPart(
  db: Db,
  part: { organisationId: string; jobId: string; webhookId: string },
): Promise<RetryPart | null> {
  const found = await firstRow<Omit<RetryPart, 'underWay'> & { ids: string[]; numbers: number[] }>(
    db,
    `SELECT j.mode, p.done, p.succeeded, p.failed, p.cursor, p.under_way AS ids, p.under_way_numbers AS numbers
       FROM retry_job_webhook p JOIN retry_job j ON j.id = p.job_id
      WHERE j.organisation_id = $1 AND p.job_id = $2 AND p.webhook_id = $3 AND NOT p.finished
        FOR UPDATE OF p`,
    [part.organisationId, part.jobId, part.webhookId],
  )
  if (found === null) return null
  const { ids, numbers, ...place } = found
  // A job of the version before has no numbers: what it had under way counts as done, and as neither of the others.
  return { ...place, underWay: ids.map((deliveryId, index) => ({ deliveryId, number: numbers[index] ?? 0 })) }
}

/** Notes where the job stands now; the counts never exceed what was counted when the job was made. */
export async function updateRetryPart(
  db: Db,
  part: { jobId: string; webhookId: string },
  place: Omit<RetryPart, 'mode'> & { finished: boolean },
): Promise<void> {
  const { done, succeeded, failed, cursor, underWay, finished } = place
  await rows(
    db,
    `UPDATE retry_job_webhook
        SET done = CASE WHEN $8 THEN total ELSE least(total, $3) END, succeeded = least(total, $4),
            failed = least(total - least(total, $4), $5), cursor = $6, under_way = $7::uuid[],
            under_way_numbers = $9::int[], finished = $8
      WHERE job_id = $1 AND webhook_id = $2`,
    [
      part.jobId,
      part.webhookId,
      done,
      succeeded,
      failed,
      cursor,
      underWay.map(({ deliveryId }) => deliveryId),
      finished,
      underWay.map(({ number }) => number),
    ],
  )
}

/** Webhooks with which the job is not finished, in the order of their ids. */
export async function listUnfinishedWebhooks(
  db: Db,
  organisationId: string,
  jobId: string,
): Promise<string[]> {
  const found = await rows<{ webhookId: string }>(
    db,
    `SELECT p.webhook_id AS "webhookId" FROM retry_job_webhook p JOIN retry_job j ON j.id = p.job_id
      WHERE j.organisation_id = $1 AND p.job_id = $2 AND NOT p.finished ORDER BY p.webhook_id`,
    [organisationId, jobId],
  )
  return found.map(({ webhookId }) => webhookId)
}

/** The job is over: whatever it covered has been attempted, or no longer needed it. */
export async function finishRetryJob(db: Db, organisationId: string, jobId: string): Promise<void> {
  await rows(
    db,
    `UPDATE retry_job SET state = 'done', sweep_at = NULL WHERE organisation_id = $1 AND id = $2`,
    [organisationId, jobId],
  )
}

/** Jobs that may have lost their workflow, taken for a while. */
export async function takeJobsForSweep(
  db: Db,
  limit: number,
): Promise<{ organisationId: string; jobId: string }[]> {
  return rows(
    db,
    `WITH due AS (
       SELECT id FROM retry_job WHERE sweep_at < now() ORDER BY sweep_at LIMIT $1 FOR UPDATE SKIP LOCKED
     )
     UPDATE retry_job j SET sweep_at = now() + interval '15 seconds' FROM due WHERE j.id = due.id
     RETURNING j.organisation_id AS "organisationId", j.id AS "jobId"`,
    [limit],
  )
}

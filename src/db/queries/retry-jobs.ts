import { firstRow, rows, type Db } from '../db.ts'
import { isCoveredSql } from './webhooks.ts'

/** A retry job as the API shows it (spec 4.2). */
export type RetryJobRow = {
  id: string
  mode: 'failed' | 'force'
  webhookId: string | null
  state: 'running' | 'done'
  total: number
  done: number
}

const COLUMNS = `j.id, j.mode, j.webhook_id AS "webhookId", j.state,
  coalesce((SELECT sum(p.total) FROM retry_job_webhook p WHERE p.job_id = j.id), 0)::int AS total,
  coalesce((SELECT sum(p.done) FROM retry_job_webhook p WHERE p.job_id = j.id), 0)::int AS done`

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
    mode: 'failed' | 'force'
    requestedBy: string
  },
): Promise<RetryJobRow> {
  const states = job.mode === 'failed' ? `('failed')` : `('failed', 'waiting')`
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
          WHERE d.webhook_id = w.id AND d.state IN ${states} AND ${isCoveredSql('d')}
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
  return firstRow(db, `SELECT ${COLUMNS} FROM retry_job j WHERE j.organisation_id = $1 AND j.id = $2`, [
    organisationId,
    id,
  ])
}

/** Where a job stands with one webhook. */
export type RetryPart = { mode: 'failed' | 'force'; done: number; cursor: string | null; underWay: string[] }

/** The same, locked until the transaction ends: two runs of one job never take the same page. Null once finished. */
export async function lockRetryPart(
  db: Db,
  part: { organisationId: string; jobId: string; webhookId: string },
): Promise<RetryPart | null> {
  return firstRow(
    db,
    `SELECT j.mode, p.done, p.cursor, p.under_way AS "underWay"
       FROM retry_job_webhook p JOIN retry_job j ON j.id = p.job_id
      WHERE j.organisation_id = $1 AND p.job_id = $2 AND p.webhook_id = $3 AND NOT p.finished
        FOR UPDATE OF p`,
    [part.organisationId, part.jobId, part.webhookId],
  )
}

/** Notes where the job stands now; `done` never exceeds what was counted when the job was made. */
export async function updateRetryPart(
  db: Db,
  part: { jobId: string; webhookId: string },
  place: { done: number; cursor: string | null; underWay: string[]; finished: boolean },
): Promise<void> {
  await rows(
    db,
    `UPDATE retry_job_webhook
        SET done = CASE WHEN $6 THEN total ELSE least(total, $3) END, cursor = $4, under_way = $5::uuid[], finished = $6
      WHERE job_id = $1 AND webhook_id = $2`,
    [part.jobId, part.webhookId, place.done, place.cursor, place.underWay, place.finished],
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
     UPDATE retry_job j SET sweep_at = now() + interval '1 minute' FROM due WHERE j.id = due.id
     RETURNING j.organisation_id AS "organisationId", j.id AS "jobId"`,
    [limit],
  )
}

// Hand-written: events are read in the order of the index of their organisation, a bounded number at a time.
import { EntityManager } from 'typeorm'
import type { ReplayRange } from '../../domain/delivery-filter.ts'
import { sql, type Db } from '../connection/db.ts'
import { allowLongerStatements } from '../connection/database-client.ts'
import { MAX_SCANNED } from './delivery-selection.ts'
import { SEQUENCE_DELAY } from './events.ts'
import type { RetryJob } from '../entities/retry-job.ts'
import { SUMS, type RetryJobSums, type StoredReplay } from './retry-jobs.ts'

/** A replay as the API shows it. Times are ISO 8601, as an answer that is stored for its `Idempotency-Key` has them. */
export type ReplayRow = Omit<StoredReplay, 'keptDays'> &
  RetryJobSums & { id: string; webhookId: string; state: RetryJob['state']; createdAt: string }

type OfWebhook = { organisationId: string; webhookId: string }

/** Events that a count reads at most. */
const MAX_COUNTED = 100_000

/** Replays that a list has at most. */
const MAX_LISTED = 100

/**
 * SQL for the next `maxScanned` events in the range (`scanned`), and those of them that the webhook, enabled or not, takes
 * now and that the replay covers (`fitting`). Deliveries older than `keptDays` may be gone, so that `missing` goes back no
 * further.
 */
const EVENTS = `bounds AS MATERIALIZED (
  SELECT greatest(:eventCursor::bigint, (SELECT sequence FROM event WHERE created_at < :since::timestamptz - ${SEQUENCE_DELAY}
                                          ORDER BY created_at DESC LIMIT 1)) AS above,
         (SELECT sequence FROM event WHERE created_at >= :until::timestamptz + ${SEQUENCE_DELAY}
           ORDER BY created_at LIMIT 1) AS below
), scanned AS MATERIALIZED (
  SELECT id, sequence, key, is_test, created_at, body FROM event
   WHERE organisation_id = :organisationId AND sequence > (SELECT above FROM bounds)
     AND sequence < coalesce((SELECT below FROM bounds), ${2n ** 63n - 1n})
   ORDER BY sequence LIMIT :maxScanned
), fitting AS MATERIALIZED (
  SELECT event.id, event.sequence
    FROM scanned AS event JOIN webhook ON webhook.id = :webhookId AND webhook.organisation_id = :organisationId
   WHERE NOT event.is_test
     AND stop_reason_of(webhook.deleted_at, true, webhook.subscribed_event_keys, event.key, event.body IS NULL) IS NULL
     AND event.created_at >= :since::timestamptz AND event.created_at < :until::timestamptz
     AND (:eventKeys::text[] IS NULL OR event.key = ANY (:eventKeys))
     AND (:include = 'all' OR event.created_at >= now() - :keptDays::int * interval '24 hours'
          AND NOT EXISTS (SELECT 1 FROM delivery WHERE event_id = event.id AND webhook_id = :webhookId))
   ORDER BY event.sequence LIMIT :limit
)`

const parametersOf = ({ since, until, eventKeys, include, keptDays }: StoredReplay) => ({
  since,
  until,
  eventKeys,
  include,
  keptDays,
})

/**
 * Returns the ids of the next `limit` events of a replay after `eventCursor`, from at most {@link MAX_SCANNED} events.
 * `last` is the next cursor; null where there was none of them.
 */
export function listReplayable(
  db: Db,
  page: OfWebhook & { replay: StoredReplay; eventCursor: string; limit: number },
): Promise<{ ids: string[]; last: string | null }> {
  const { organisationId, webhookId, replay, eventCursor, limit } = page
  return sql(
    `WITH ${EVENTS}
     SELECT coalesce((SELECT array_agg(id ORDER BY sequence) FROM fitting), '{}') AS ids,
            CASE WHEN (SELECT count(*) FROM fitting) < :limit AND (SELECT count(*) FROM scanned) = :maxScanned
                 THEN (SELECT max(sequence) FROM scanned) ELSE (SELECT max(sequence) FROM fitting) END AS last`,
    { organisationId, webhookId, ...parametersOf(replay), eventCursor, limit, maxScanned: MAX_SCANNED },
  ).one(db)
}

/** What a replay would send now. `since` is later than requested where nothing older is kept; `until` is not after now. */
export type ReplayCount = { since: Date; until: Date; total: number; isTotalExact: boolean }

/** Counts the events of a replay, out of the first {@link MAX_COUNTED} in its range. */
export async function countReplayable(
  db: Db,
  of: OfWebhook & { range: ReplayRange; keptDays: number },
): Promise<ReplayCount> {
  const { range, keptDays, ...webhook } = of
  if (db instanceof EntityManager) await allowLongerStatements(db)
  const times = await sql(
    `SELECT greatest(:since::timestamptz,
                     CASE WHEN :include = 'missing' THEN now() - :keptDays::int * interval '24 hours' END,
                     (SELECT date_trunc('milliseconds', created_at) FROM event
                       WHERE organisation_id = :organisationId ORDER BY sequence LIMIT 1)) AS since,
            least(:until::timestamptz, now()) AS until`,
    {
      organisationId: webhook.organisationId,
      keptDays,
      since: range.since,
      until: range.until,
      include: range.include,
    },
  ).one<{ since: Date; until: Date }>(db)
  const counted = await sql(
    `WITH ${EVENTS}
     SELECT (SELECT count(*)::int FROM fitting) AS total,
            (SELECT count(*) FROM scanned) < :maxScanned AS "isTotalExact"`,
    { ...webhook, ...range, ...times, keptDays, eventCursor: '0', limit: null, maxScanned: MAX_COUNTED },
  ).one<{ total: number; isTotalExact: boolean }>(db)
  return { ...times, ...counted }
}

/** Makes the job of a replay. One that covers nothing is done at once. */
export async function insertReplay(
  db: Db,
  job: OfWebhook & {
    id: string
    range: ReplayRange
    keptDays: number
    count: ReplayCount
    requestedBy: string
  },
): Promise<ReplayRow> {
  const { id, organisationId, webhookId, range, keptDays, count, requestedBy } = job
  const { since, until, total, isTotalExact } = count
  const isRunning = total > 0 || !isTotalExact
  const replay = { ...range, since, until, keptDays, isTotalExact }
  await sql(
    `INSERT INTO retry_job (id, organisation_id, webhook_id, mode, replay, requested_by, state, sweep_at)
     VALUES (:id, :organisationId, :webhookId, 'replay', :replay::jsonb, :requestedBy,
             CASE WHEN :isRunning THEN 'running' ELSE 'done' END,
             CASE WHEN :isRunning THEN now() + interval '5 seconds' END)`,
    { id, organisationId, webhookId, replay, requestedBy, isRunning },
  ).rows(db)
  await sql(
    `INSERT INTO retry_job_webhook (job_id, webhook_id, total, finished) VALUES (:id, :webhookId, :total, NOT :isRunning)`,
    { id, webhookId, total, isRunning },
  ).rows(db)
  const made = await findReplay(db, { organisationId, webhookId }, id)
  if (made === null) throw new Error('INSERT gave no row')
  return made
}

/** Returns the newest replays to a webhook, {@link MAX_LISTED} at most. */
export async function listReplays(db: Db, of: OfWebhook): Promise<ReplayRow[]> {
  return read(db, of, null)
}

export async function findReplay(db: Db, of: OfWebhook, id: string): Promise<ReplayRow | null> {
  return (await read(db, of, id))[0] ?? null
}

/** Ends a running replay; deliveries that it has made go on. False where it has ended, or there is none. */
export async function cancelReplay(
  db: Db,
  { organisationId, webhookId }: OfWebhook,
  id: string,
): Promise<boolean> {
  const cancelled = await sql(
    `WITH cancelled AS (
       UPDATE retry_job SET state = 'cancelled', sweep_at = NULL
        WHERE organisation_id = :organisationId AND webhook_id = :webhookId AND id = :id AND mode = 'replay'
          AND state = 'running'
       RETURNING id
     ) UPDATE retry_job_webhook SET finished = true FROM cancelled WHERE job_id = cancelled.id RETURNING job_id`,
    { organisationId, webhookId, id },
  ).rows(db)
  return cancelled.length > 0
}

async function read(
  db: Db,
  { organisationId, webhookId }: OfWebhook,
  id: string | null,
): Promise<ReplayRow[]> {
  const found = await sql(
    `SELECT id, webhook_id AS "webhookId", state, replay, created_at AS "createdAt", sums.*
       FROM retry_job CROSS JOIN LATERAL ${SUMS} sums
      WHERE organisation_id = :organisationId AND webhook_id = :webhookId AND mode = 'replay'
        AND (:id::uuid IS NULL OR id = :id)
      ORDER BY id DESC LIMIT :limit`,
    { organisationId, webhookId, id, limit: MAX_LISTED },
  ).rows<Omit<ReplayRow, keyof StoredReplay | 'createdAt'> & { replay: StoredReplay; createdAt: Date }>(db)
  return found.map(({ replay, createdAt, ...row }) => ({
    ...row,
    createdAt: createdAt.toISOString(),
    since: replay.since,
    until: replay.until,
    eventKeys: replay.eventKeys,
    include: replay.include,
    isTotalExact: replay.isTotalExact || row.state === 'done',
  }))
}

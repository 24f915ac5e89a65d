// Hand-written: events are read in the order of the index of their organisation, a bounded number at a time.
import { EntityManager } from 'typeorm'
import type { ReplayRange } from '../../domain/replay.ts'
import { sql, type Db } from '../connection/db.ts'
import { allowLongerStatements } from '../connection/database-client.ts'
import { MAX_LOOKED_AT } from './delivery-selection.ts'
import { SUMS, type StoredReplay } from './retry-jobs.ts'

/** A replay as the API shows it. Times are ISO 8601, as an answer that is stored for its `Idempotency-Key` has them. */
export type ReplayRow = Omit<ReplayRange, 'since' | 'until'> & {
  since: string
  until: string
  id: string
  webhookId: string
  state: 'running' | 'done' | 'cancelled'
  total: number
  /** False while `total` is the number of events that were counted before the count ended at its bound. */
  isTotalExact: boolean
  done: number
  succeeded: number
  failed: number
  createdAt: string
}

type OfWebhook = { organisationId: string; webhookId: string }

/** Events that a count reads at most. */
const MAX_COUNTED = 100_000

/** Replays that a list has at most. */
const MAX_LISTED = 100

/** A sequence number is drawn at most so long after the beginning of its transaction, which is `created_at`. */
const SEQUENCE_DELAY = `interval '1 minute'`

/**
 * SQL for the next `maxLookedAt` events in the range (`looked`), and those of them that the webhook, as it is now, takes
 * and that the replay covers (`fitting`). Deliveries older than `keptDays` may be gone, so that `missing` goes back no
 * further.
 */
const EVENTS = `bounds AS MATERIALIZED (
  SELECT greatest(:eventCursor::bigint, (SELECT sequence FROM event WHERE created_at < :since::timestamptz - ${SEQUENCE_DELAY}
                                          ORDER BY created_at DESC LIMIT 1)) AS above,
         (SELECT sequence FROM event WHERE created_at >= :until::timestamptz + ${SEQUENCE_DELAY}
           ORDER BY created_at LIMIT 1) AS below
), looked AS MATERIALIZED (
  SELECT id, sequence, key, is_test, created_at, body IS NULL AS is_erased FROM event
   WHERE organisation_id = :organisationId AND sequence > (SELECT above FROM bounds)
     AND sequence < coalesce((SELECT below FROM bounds), ${2n ** 63n - 1n})
   ORDER BY sequence LIMIT :maxLookedAt
), fitting AS MATERIALIZED (
  SELECT e.id, e.sequence
    FROM looked e JOIN webhook w ON w.id = :webhookId AND w.organisation_id = :organisationId
   WHERE NOT e.is_test AND stop_reason_of(w.deleted_at, w.enabled, w.subscribed_event_keys, e.key, e.is_erased) IS NULL
     AND e.created_at >= :since::timestamptz AND e.created_at < :until::timestamptz
     AND (:eventKeys::text[] IS NULL OR e.key = ANY (:eventKeys))
     AND (:include = 'all' OR e.created_at >= now() - :keptDays::int * interval '24 hours'
          AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.event_id = e.id AND d.webhook_id = w.id))
   ORDER BY e.sequence LIMIT :limit
)`

const parametersOf = ({ since, until, eventKeys, include, keptDays }: StoredReplay) => ({
  since,
  until,
  eventKeys,
  include,
  keptDays,
})

/**
 * Returns the ids of the next `limit` events of a replay after `eventCursor`, from at most {@link MAX_LOOKED_AT} events.
 * `last` is the next cursor; null when nothing is left.
 */
export async function listReplayable(
  db: Db,
  page: OfWebhook & { replay: StoredReplay; eventCursor: string; limit: number },
): Promise<{ ids: string[]; last: string | null }> {
  const { organisationId, webhookId, replay, eventCursor, limit } = page
  const found = await sql(
    `WITH ${EVENTS}
     SELECT coalesce((SELECT array_agg(id ORDER BY sequence) FROM fitting), '{}') AS ids,
            CASE WHEN (SELECT count(*) FROM fitting) = :limit THEN (SELECT max(sequence) FROM fitting)
                 WHEN (SELECT count(*) FROM looked) = :maxLookedAt THEN (SELECT max(sequence) FROM looked) END AS last`,
    { organisationId, webhookId, ...parametersOf(replay), eventCursor, limit, maxLookedAt: MAX_LOOKED_AT },
  ).first<{ ids: string[]; last: string | null }>(db)
  return found ?? { ids: [], last: null }
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
  ).first<{ since: Date; until: Date }>(db)
  if (times === null) throw new Error('SELECT gave no row')
  const counted = await sql(
    `WITH ${EVENTS}
     SELECT (SELECT count(*)::int FROM fitting) AS total,
            (SELECT count(*) FROM looked) < :maxLookedAt AS "isTotalExact"`,
    { ...webhook, ...range, ...times, keptDays, eventCursor: '0', limit: null, maxLookedAt: MAX_COUNTED },
  ).first<{ total: number; isTotalExact: boolean }>(db)
  return { ...times, total: 0, isTotalExact: true, ...counted }
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
     ) UPDATE retry_job_webhook p SET finished = true FROM cancelled WHERE p.job_id = cancelled.id RETURNING p.job_id`,
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
    `SELECT j.id, j.webhook_id AS "webhookId", j.state, j.replay, j.created_at AS "createdAt", sums.*
       FROM retry_job j CROSS JOIN ${SUMS}
      WHERE j.organisation_id = :organisationId AND j.webhook_id = :webhookId AND j.mode = 'replay'
        AND (:id::uuid IS NULL OR j.id = :id)
      ORDER BY j.id DESC LIMIT :limit`,
    { organisationId, webhookId, id, limit: MAX_LISTED },
  ).rows<
    Omit<ReplayRow, keyof ReplayRange | 'isTotalExact' | 'createdAt'> & {
      replay: StoredReplay
      createdAt: Date
    }
  >(db)
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

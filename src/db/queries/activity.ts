// Hand-written: statistics.
import { sql, type Db } from '../connection/db.ts'

/** Attempts that began within an hour, by outcome. */
export type HourRow = { startedAt: Date; succeeded: number; failed: number }

/** How long first attempts let events wait: from the commit of the event to the end of the first attempt. */
export type FirstAttemptLatency = { count: number; p50Ms: number | null; p99Ms: number | null }

/** A larger sample makes the figures no better, and reading it slow. */
const LATENCY_SAMPLE = 2_000

/**
 * The `hours` hours of a webhook that end with the current one, oldest first, each with its attempts; `webhookId` null:
 * of every webhook of the organisation, oldest webhook first. Counted from the partial indexes of each outcome, webhook
 * by webhook, without reading the attempts themselves.
 */
export async function listHours(
  db: Db,
  organisationId: string,
  webhookId: string | null,
  hours: number,
): Promise<(HourRow & { webhookId: string })[]> {
  const counted = (outcome: 'succeeded' | 'failed') =>
    `LEFT JOIN LATERAL (
       SELECT date_bin('1 hour', started_at, (SELECT first FROM span)) AS hour, count(*)::int AS count
         FROM attempt WHERE webhook_id = own.id AND outcome = '${outcome}' AND started_at >= (SELECT first FROM span)
        GROUP BY 1
     ) ${outcome} ON true`
  return sql(
    `WITH own AS (
       SELECT id, created_at FROM webhook
        WHERE organisation_id = :organisationId AND deleted_at IS NULL AND (:webhookId::uuid IS NULL OR id = :webhookId)
     ), span AS (
       SELECT this - make_interval(hours => :hours - 1) AS first, this AS last
         FROM date_trunc('hour', now(), 'UTC') this
     ), succeeded AS (
       SELECT own.id, hour, count FROM own ${counted('succeeded')}
     ), failed AS (
       SELECT own.id, hour, count FROM own ${counted('failed')}
     )
     SELECT id AS "webhookId", hour AS "startedAt",
            coalesce(succeeded.count, 0) AS succeeded, coalesce(failed.count, 0) AS failed
       FROM own CROSS JOIN span CROSS JOIN generate_series(span.first, span.last, '1 hour') AS hour
       LEFT JOIN succeeded USING (id, hour)
       LEFT JOIN failed USING (id, hour)
      ORDER BY own.created_at, id, hour`,
    { organisationId, webhookId, hours },
  ).rows(db)
}

/** Of the latest first attempts within `hours`: {@link LATENCY_SAMPLE} of each outcome at most. */
export async function firstAttemptLatency(
  db: Db,
  organisationId: string,
  webhookId: string,
  hours: number,
): Promise<FirstAttemptLatency> {
  const latest = (outcome: 'succeeded' | 'failed') =>
    `(SELECT delivery_id, started_at, duration_ms FROM attempt
       WHERE webhook_id = :webhookId AND outcome = '${outcome}' AND number = 1
         AND started_at >= now() - make_interval(hours => :hours)
       ORDER BY started_at DESC LIMIT ${LATENCY_SAMPLE})`
  const found = await sql(
    `SELECT count(*)::int AS count,
            round(percentile_cont(0.5) WITHIN GROUP (ORDER BY ms))::int AS "p50Ms",
            round(percentile_cont(0.99) WITHIN GROUP (ORDER BY ms))::int AS "p99Ms"
       FROM (
         SELECT greatest(extract(epoch FROM a.started_at - d.created_at) * 1000, 0) + a.duration_ms AS ms
           FROM (${latest('succeeded')} UNION ALL ${latest('failed')}) a
           JOIN delivery d ON d.id = a.delivery_id
          WHERE d.organisation_id = :organisationId
       ) first_attempt`,
    { organisationId, webhookId, hours },
  ).first<FirstAttemptLatency>(db)
  return found ?? { count: 0, p50Ms: null, p99Ms: null }
}

import { firstRow, rows, type Db } from '../db.ts'

/** Attempts that began within an hour, by outcome. */
export type HourRow = { startedAt: Date; succeeded: number; failed: number }

/** How long first attempts let events wait: from the commit of the event to the end of the first attempt. */
export type FirstAttemptLatency = { count: number; p50Ms: number | null; p99Ms: number | null }

/** More would make the figures no better, and the look at them slow. */
const LATENCY_SAMPLE = 2_000

/**
 * The `hours` hours of a webhook that end with the current one, oldest first, each with its attempts. Counted from the
 * indexes that hold the attempts of one outcome each, without reading the attempts themselves.
 */
export async function listHours(
  db: Db,
  organisationId: string,
  webhookId: string,
  hours: number,
): Promise<HourRow[]> {
  const counted = (outcome: 'succeeded' | 'failed') =>
    `SELECT date_bin('1 hour', started_at, (SELECT first FROM span)) AS hour, count(*)::int AS count
       FROM attempt WHERE webhook_id = (SELECT id FROM own) AND outcome = '${outcome}'
        AND started_at >= (SELECT first FROM span)
      GROUP BY 1`
  return rows(
    db,
    `WITH own AS (
       SELECT id FROM webhook WHERE organisation_id = $1 AND id = $2 AND deleted_at IS NULL
     ), span AS (
       SELECT this - make_interval(hours => $3 - 1) AS first, this AS last
         FROM date_trunc('hour', now(), 'UTC') this
     )
     SELECT hour AS "startedAt", coalesce(s.count, 0) AS succeeded, coalesce(f.count, 0) AS failed
       FROM span CROSS JOIN generate_series(span.first, span.last, '1 hour') AS hour
       LEFT JOIN (${counted('succeeded')}) s USING (hour)
       LEFT JOIN (${counted('failed')}) f USING (hour)
      ORDER BY hour`,
    [organisationId, webhookId, hours],
  )
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
       WHERE webhook_id = $2 AND outcome = '${outcome}' AND number = 1
         AND started_at >= now() - make_interval(hours => $3)
       ORDER BY started_at DESC LIMIT $4)`
  const found = await firstRow<FirstAttemptLatency>(
    db,
    `SELECT count(*)::int AS count,
            round(percentile_cont(0.5) WITHIN GROUP (ORDER BY ms))::int AS "p50Ms",
            round(percentile_cont(0.99) WITHIN GROUP (ORDER BY ms))::int AS "p99Ms"
       FROM (
         SELECT greatest(extract(epoch FROM a.started_at - d.created_at) * 1000, 0) + a.duration_ms AS ms
           FROM (${latest('succeeded')} UNION ALL ${latest('failed')}) a
           JOIN delivery d ON d.id = a.delivery_id
          WHERE d.organisation_id = $1
       ) first_attempt`,
    [organisationId, webhookId, hours, LATENCY_SAMPLE],
  )
  return found ?? { count: 0, p50Ms: null, p99Ms: null }
}

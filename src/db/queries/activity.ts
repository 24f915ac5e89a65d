// Hand-written: statistics.
import { sql, type Db } from '../connection/db.ts'
import { latestAttempts } from './overview.ts'

/**
 * Attempts of a webhook that began within one bucket of time, by outcome. `maxCounted`: so many of an outcome are
 * counted at most, in all buckets of the webhook.
 */
export type BucketRow = {
  webhookId: string
  startedAt: Date
  succeeded: number
  failed: number
  maxCounted: number
}

/** How long first attempts let events wait: from the commit of the event to the end of the first attempt. */
export type FirstAttemptLatency = { count: number; p50Ms: number | null; p99Ms: number | null }

/** A larger sample makes the figures no better, and reading it slow. */
const LATENCY_SAMPLE = 2_000

/** Of each webhook and outcome the latest so many attempts are counted, of many webhooks so many together. */
const MAX_COUNTED = 20_000
const MAX_COUNTED_OF_ALL = 200_000

type Buckets = { buckets: number; bucketMs: number }

/**
 * The buckets of a webhook that end with the current one, oldest first, each with its attempts; `webhookId` null: of
 * every webhook of the organisation, oldest webhook first. Counted from the partial indexes of each outcome, webhook by
 * webhook, without reading the attempts themselves.
 */
export async function listBuckets(
  db: Db,
  organisationId: string,
  webhookId: string | null,
  { buckets, bucketMs }: Buckets,
): Promise<BucketRow[]> {
  const counted = (outcome: 'succeeded' | 'failed') =>
    `LEFT JOIN LATERAL (
       SELECT date_bin(:bucketMs * interval '1 ms', started_at, (SELECT first FROM span)) AS bucket, count(*)::int AS count
         FROM (SELECT started_at FROM attempt
                WHERE webhook_id = own.id AND outcome = '${outcome}' AND started_at >= (SELECT first FROM span)
                ORDER BY started_at DESC LIMIT (SELECT most FROM bound)) latest
        GROUP BY 1
     ) ${outcome} ON true`
  return sql(
    `WITH own AS (
       SELECT id, created_at FROM webhook
        WHERE organisation_id = :organisationId AND deleted_at IS NULL AND (:webhookId::uuid IS NULL OR id = :webhookId)
     ), span AS (
       SELECT this - (:buckets::int - 1) * :bucketMs * interval '1 ms' AS first, this AS last
         FROM date_bin(:bucketMs * interval '1 ms', now(), 'epoch') this
     ), bound AS (
       SELECT least(${MAX_COUNTED}, ${MAX_COUNTED_OF_ALL} / greatest(count(*), 1))::int AS most FROM own
     ), succeeded AS (
       SELECT own.id, bucket, count FROM own ${counted('succeeded')}
     ), failed AS (
       SELECT own.id, bucket, count FROM own ${counted('failed')}
     )
     SELECT id AS "webhookId", bucket AS "startedAt",
            coalesce(succeeded.count, 0) AS succeeded, coalesce(failed.count, 0) AS failed, most AS "maxCounted"
       FROM own CROSS JOIN bound CROSS JOIN span
      CROSS JOIN generate_series(span.first, span.last, :bucketMs * interval '1 ms') AS bucket
       LEFT JOIN succeeded USING (id, bucket)
       LEFT JOIN failed USING (id, bucket)
      ORDER BY own.created_at, id, bucket`,
    { organisationId, webhookId, buckets, bucketMs },
  ).rows(db)
}

/** Of the latest first attempts within `rangeMs`: {@link LATENCY_SAMPLE} of each outcome at most. */
export function firstAttemptLatency(
  db: Db,
  organisationId: string,
  webhookId: string,
  rangeMs: number,
): Promise<FirstAttemptLatency> {
  const latest = (outcome: 'succeeded' | 'failed') =>
    `(SELECT delivery_id, started_at, duration_ms FROM attempt
       WHERE webhook_id = :webhookId AND outcome = '${outcome}' AND number = 1
         AND started_at >= now() - :rangeMs * interval '1 ms'
       ORDER BY started_at DESC LIMIT ${LATENCY_SAMPLE})`
  return sql(
    `SELECT count(*)::int AS count,
            round(percentile_cont(0.5) WITHIN GROUP (ORDER BY ms))::int AS "p50Ms",
            round(percentile_cont(0.99) WITHIN GROUP (ORDER BY ms))::int AS "p99Ms"
       FROM (
         SELECT greatest(extract(epoch FROM latest.started_at - delivery.created_at) * 1000, 0) + latest.duration_ms AS ms
           FROM (${latest('succeeded')} UNION ALL ${latest('failed')}) latest
           JOIN delivery ON delivery.id = latest.delivery_id
          WHERE delivery.organisation_id = :organisationId
       ) first_attempt`,
    { organisationId, webhookId, rangeMs },
  ).one(db)
}

/** The 95th percentile of the duration of the latest attempts within `rangeMs`, in ms; null without any. */
export async function p95Duration(
  db: Db,
  organisationId: string,
  webhookId: string,
  rangeMs: number,
): Promise<number | null> {
  const inRange = `started_at >= now() - :rangeMs * interval '1 ms'`
  const latest = latestAttempts('started_at, duration_ms', inRange, LATENCY_SAMPLE)
  const found = await sql(
    `SELECT (SELECT percentile_disc(0.95) WITHIN GROUP (ORDER BY duration_ms) FROM ${latest} latest) AS ms
       FROM webhook WHERE id = :webhookId AND organisation_id = :organisationId`,
    { organisationId, webhookId, rangeMs },
  ).first<{ ms: number | null }>(db)
  return found?.ms ?? null
}

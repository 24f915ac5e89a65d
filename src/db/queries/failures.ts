// Hand-written: the failed attempts of a time are grouped by what went wrong in one bounded read of their index.
import type { FailureCode } from '../../domain/attempt-outcome.ts'
import { sql, type Db } from '../connection/db.ts'

/** Attempts that failed in the same way. */
type FailureCauseRow = {
  failureCode: FailureCode
  statusCode: number | null
  error: string | null
  failedAttempts: number
  /** Deliveries that these attempts were of. */
  deliveries: number
  firstAt: Date
  lastAt: Date
}

/** The failed attempts of a time, the most frequent cause first. */
export type FailuresRow = {
  failedAttempts: number
  deliveries: number
  /** There may be more: the latest {@link MAX_ATTEMPTS_READ} are counted. */
  isCapped: boolean
  causes: FailureCauseRow[]
}

/** Reading the attempts of a bad day costs a few ms so. */
const MAX_ATTEMPTS_READ = 1_000
const MAX_CAUSES = 20

/** A failure is recorded, which opens its incident, at most so long after its attempt: PostgreSQL may be silent. */
const RECORDING_DELAY = `interval '2 minutes'`
/** No attempt lasts longer. */
const MAX_ATTEMPT_DURATION = `interval '90 seconds'`

type GroupRow = Omit<FailureCauseRow, 'failureCode'> & {
  /** Of its span. */
  id: string
  failureCode: FailureCode | null
  total: boolean
}

/**
 * SQL for the groups of the failed attempts that ended in each span of a webhook, from `began` on and before `ended`; the
 * first row of each is of all of them.
 */
const GROUPS_OF_SPANS = `SELECT span.id, grouped.*
  FROM span CROSS JOIN LATERAL (
    SELECT failure_code AS "failureCode", status_code AS "statusCode", error, grouping(failure_code) = 1 AS total,
           count(*)::int AS "failedAttempts", count(DISTINCT delivery_id)::int AS deliveries,
           min(started_at) AS "firstAt", max(started_at) AS "lastAt"
      FROM (SELECT * FROM attempt
             WHERE webhook_id = span.webhook_id AND outcome = 'failed'
               AND started_at >= span.began - ${MAX_ATTEMPT_DURATION} AND started_at < span.ended
               AND started_at + duration_ms * interval '1 ms' >= span.began
               AND started_at + duration_ms * interval '1 ms' < span.ended
             ORDER BY started_at DESC LIMIT ${MAX_ATTEMPTS_READ}) failed
     GROUP BY GROUPING SETS ((failure_code, status_code, error), ())
     ORDER BY total DESC, count(*) DESC, max(started_at) DESC LIMIT ${MAX_CAUSES + 1}
  ) grouped`

/** The failed attempts of the last `rangeMs`. */
export async function findFailures(
  db: Db,
  organisationId: string,
  webhookId: string,
  rangeMs: number,
): Promise<FailuresRow> {
  const found = await sql(
    `WITH span AS (
       SELECT id, id AS webhook_id, now() - :rangeMs * interval '1 ms' AS began, 'infinity'::timestamptz AS ended
         FROM webhook WHERE id = :webhookId AND organisation_id = :organisationId
     ) ${GROUPS_OF_SPANS}`,
    { organisationId, webhookId, rangeMs },
  ).rows<GroupRow>(db)
  return toFailures(found)
}

/** The failed attempts of each incident, from the one that opened it; those of an earlier incident are not counted. */
export async function findFailuresOfIncidents(
  db: Db,
  organisationId: string,
  incidentIds: readonly string[],
): Promise<Map<string, FailuresRow>> {
  const found = await sql(
    `WITH span AS (
       SELECT id, webhook_id, coalesce(closed_at, 'infinity') AS ended,
              greatest(opened_at - ${RECORDING_DELAY},
                       (SELECT closed_at FROM incident earlier
                         WHERE earlier.webhook_id = incident.webhook_id AND earlier.opened_at < incident.opened_at
                         ORDER BY earlier.opened_at DESC LIMIT 1)) AS began
         FROM incident WHERE organisation_id = :organisationId AND id = ANY(:incidentIds::uuid[])
     ) ${GROUPS_OF_SPANS}`,
    { organisationId, incidentIds },
  ).rows<GroupRow>(db)
  return new Map(incidentIds.map((id) => [id, toFailures(found.filter((group) => group.id === id))]))
}

export const NO_FAILURES: FailuresRow = { failedAttempts: 0, deliveries: 0, isCapped: false, causes: [] }

function toFailures(groups: readonly GroupRow[]): FailuresRow {
  const total = groups.find((group) => group.total)
  const causes = groups.filter((group): group is GroupRow & FailureCauseRow => group.failureCode !== null)
  const { failedAttempts, deliveries } = total ?? NO_FAILURES
  return { failedAttempts, deliveries, isCapped: failedAttempts >= MAX_ATTEMPTS_READ, causes }
}

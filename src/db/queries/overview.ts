// Hand-written: statistics over five tables, each part read from an index made for it.
import type { Standing } from '../../domain/webhook-status.ts'
import { sql, type Db } from '../connection/db.ts'
import type { LatestAttemptRow } from './deliveries.ts'
import { waitingFirstAttemptsSql, type WaitingFirstAttempts } from './first-attempts.ts'
import type { WebhookRow } from './webhooks.ts'

type LatestAttempt = Omit<LatestAttemptRow, 'body'>

/** A webhook and how its deliveries stand, without payloads: little enough to ask for every few seconds. */
export type OverviewRow = WebhookRow &
  WaitingFirstAttempts & {
    waitingForRetry: number
    permanentlyFailed: number
    stopped: number
    latestAttempt: LatestAttempt | null
    openIncident: { id: string; openedAt: Date; exhaustedAt: Date | null } | null
    recent: RecentAttempts
  }

/** The latest {@link MAX_RECENT} attempts of the last 24 hours. */
type RecentAttempts = {
  attempts: number
  succeeded: number
  /** Null without attempts. */
  p95DurationMs: number | null
  /** Of the last hour, since the open incident was opened. */
  sinceOpened: { attempts: number; succeeded: number }
}

/** Enough for a share and a percentile; reading the rows of more would cost more than all the rest. */
const MAX_RECENT = 200

/** SQL for the latest attempt of webhook `w`. */
const LATEST_ATTEMPT = `(
  (SELECT * FROM attempt WHERE webhook_id = w.id AND outcome = 'succeeded' ORDER BY started_at DESC LIMIT 1)
   UNION ALL
  (SELECT * FROM attempt WHERE webhook_id = w.id AND outcome = 'failed' ORDER BY started_at DESC LIMIT 1)
   ORDER BY started_at DESC LIMIT 1)`

/** SQL for the latest {@link MAX_RECENT} attempts of webhook `w` that began from `since` on. */
function recentSql(since: string): string {
  const newest = (outcome: 'succeeded' | 'failed') =>
    `(SELECT outcome, duration_ms, started_at FROM attempt
       WHERE webhook_id = w.id AND outcome = '${outcome}' AND started_at >= ${since}
       ORDER BY started_at DESC LIMIT ${MAX_RECENT})`
  return `(SELECT * FROM (${newest('succeeded')} UNION ALL ${newest('failed')}) both_outcomes
    ORDER BY started_at DESC LIMIT ${MAX_RECENT})`
}

/** From when on attempts count for the status of a webhook with the open incident `i`. */
const SINCE_OPENED = `greatest(i.opened_at, now() - interval '1 hour')`

/** Every webhook of the organisation, oldest first. */
export function listOverview(db: Db, organisationId: string): Promise<OverviewRow[]> {
  return readOverview(db, 'w.organisation_id = :organisationId', 'w.created_at, w.id', { organisationId })
}

/** These webhooks of any organisations, newest first: for operators. */
export function listOverviewOf(db: Db, ids: readonly string[]): Promise<OverviewRow[]> {
  return readOverview(db, 'w.id = ANY(:ids::uuid[])', 'w.id DESC', { ids })
}

/** What the status of webhooks follows from, without the rest: `ids` is SQL for their ids. */
export async function listStandings(
  db: Db,
  ids: string,
  parameters: Record<string, unknown>,
): Promise<(Standing & { id: string })[]> {
  const found = await sql(
    `SELECT w.id, w.enabled, i.id IS NOT NULL AS "hasOpenIncident", latest.outcome AS "latestOutcome",
            since_opened.attempts, since_opened.succeeded
       FROM (${ids}) wanted
       JOIN webhook w ON w.id = wanted.id AND w.deleted_at IS NULL
       LEFT JOIN incident i ON i.webhook_id = w.id AND i.closed_at IS NULL
       LEFT JOIN LATERAL ${LATEST_ATTEMPT} latest ON true
      CROSS JOIN LATERAL (
         SELECT count(*)::int AS attempts, count(*) FILTER (WHERE outcome = 'succeeded')::int AS succeeded
           FROM ${recentSql(`CASE WHEN i.id IS NULL THEN 'infinity' ELSE ${SINCE_OPENED} END`)} a
       ) since_opened`,
    parameters,
  ).rows<Omit<Standing, 'sinceOpened'> & Standing['sinceOpened'] & { id: string }>(db)
  return found.map(({ attempts, succeeded, ...standing }) => ({
    ...standing,
    sinceOpened: { attempts, succeeded },
  }))
}

/** Each part is read from an index made for it. */
async function readOverview(
  db: Db,
  which: string,
  order: string,
  parameters: Record<string, unknown>,
): Promise<OverviewRow[]> {
  const found = await sql(
    `SELECT w.id, w.url, w.description, w.subscribed_event_keys AS "subscribedEventKeys", w.enabled,
            w.held_at AS "heldAt", w.hold_reason AS "holdReason",
            w.created_at AS "createdAt", w.updated_at AS "updatedAt",
            (SELECT count(*)::int FROM delivery WHERE webhook_id = w.id AND state = 'waiting') AS "waitingForRetry",
            (SELECT count(*)::int FROM delivery WHERE webhook_id = w.id AND state = 'failed') AS "permanentlyFailed",
            (SELECT count(*)::int FROM delivery
              WHERE webhook_id = w.id AND state = 'stopped' AND NOT is_test) AS stopped,
            i.id AS "incidentId", i.opened_at AS "openedAt", i.exhausted_at AS "exhaustedAt", waiting_first.*, latest.*, recent.*
       FROM webhook w
      CROSS JOIN ${waitingFirstAttemptsSql('w.id')} waiting_first
       LEFT JOIN incident i ON i.webhook_id = w.id AND i.closed_at IS NULL
       LEFT JOIN LATERAL (
         SELECT a.delivery_id AS "deliveryId", e.key AS "eventKey", a.number, a.started_at AS "attemptedAt",
                a.outcome, a.status_code AS "statusCode", a.error
           FROM ${LATEST_ATTEMPT} a
           JOIN delivery d ON d.id = a.delivery_id
           JOIN event e ON e.id = d.event_id
       ) latest ON true
      CROSS JOIN LATERAL (
         SELECT count(*)::int AS attempts, count(*) FILTER (WHERE outcome = 'succeeded')::int AS succeeded,
                percentile_disc(0.95) WITHIN GROUP (ORDER BY duration_ms) AS "p95DurationMs",
                count(*) FILTER (WHERE started_at >= ${SINCE_OPENED})::int AS "attemptsSince",
                count(*) FILTER (WHERE started_at >= ${SINCE_OPENED} AND outcome = 'succeeded')::int AS "succeededSince"
           FROM ${recentSql(`now() - interval '24 hours'`)} a
       ) recent
      WHERE ${which} AND w.deleted_at IS NULL
      ORDER BY ${order}`,
    parameters,
  ).rows<FlatRow>(db)
  return found.map(toOverview)
}

type OrNull<Row> = { [Key in keyof Row]: Row[Key] | null }
type FlatRow = Omit<OverviewRow, 'latestAttempt' | 'openIncident' | 'recent'> &
  Omit<RecentAttempts, 'sinceOpened'> & {
    attemptsSince: number
    succeededSince: number
  } & OrNull<LatestAttempt> & { incidentId: string | null; openedAt: Date | null; exhaustedAt: Date | null }

function toOverview(row: FlatRow): OverviewRow {
  const { incidentId, openedAt, exhaustedAt, ...others } = row
  const { attempts, succeeded, p95DurationMs, attemptsSince, succeededSince, ...rest } = others
  const { deliveryId, eventKey, number, attemptedAt, outcome, statusCode, error, ...webhook } = rest
  const latest = { deliveryId, eventKey, number, attemptedAt, outcome, statusCode, error }
  return {
    ...webhook,
    latestAttempt: isAttempt(latest) ? latest : null,
    openIncident: incidentId === null || openedAt === null ? null : { id: incidentId, openedAt, exhaustedAt },
    recent: {
      attempts,
      succeeded,
      p95DurationMs,
      sinceOpened: { attempts: attemptsSince, succeeded: succeededSince },
    },
  }
}

/** A webhook that was never attempted has nulls in their place. */
function isAttempt(latest: OrNull<LatestAttempt>): latest is LatestAttempt {
  return latest.deliveryId !== null
}

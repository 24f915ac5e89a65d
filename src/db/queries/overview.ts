// Hand-written: statistics over five tables, each part read from an index made for it.
import type { StatusInputs } from '../../domain/webhook-status.ts'
import { sql, type Db } from '../connection/db.ts'
import type { Attempt } from '../entities/delivery.ts'
import { WAITING_FIRST_ATTEMPTS, type WaitingFirstAttempts } from './backlog.ts'
import type { WebhookRow } from './webhooks.ts'

/** The attempt of a webhook that was begun last; attempts of test events do not count. */
type LatestAttempt = Pick<Attempt, 'deliveryId' | 'number' | 'outcome' | 'statusCode' | 'error'> & {
  eventKey: string
  attemptedAt: Date
}

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

/**
 * SQL for the latest `limit` attempts of a webhook for which SQL is true, newest first: those of each outcome are read
 * from the index of it.
 */
export function latestAttempts(columns: string, condition: string, limit: number): string {
  const [succeeded, failed] = ['succeeded', 'failed'].map(
    (outcome) => `(SELECT ${columns} FROM attempt
       WHERE webhook_id = webhook.id AND outcome = '${outcome}' AND ${condition}
       ORDER BY started_at DESC LIMIT ${limit})`,
  )
  return `(${succeeded} UNION ALL ${failed} ORDER BY started_at DESC LIMIT ${limit})`
}

const LATEST_ATTEMPT = latestAttempts('*', 'true', 1)

/** SQL for the latest {@link MAX_RECENT} attempts of a webhook that began after the SQL expression `since`. */
const recentSince = (since: string): string =>
  latestAttempts('outcome, duration_ms, started_at', `started_at >= ${since}`, MAX_RECENT)

/** From when on attempts count for the status of a webhook with an open incident. */
const SINCE_OPENED = `greatest(incident.opened_at, now() - interval '1 hour')`

/** The webhooks of an organisation, oldest first. */
const OF_ORGANISATION = `webhook.organisation_id = :organisationId AND webhook.deleted_at IS NULL
      ORDER BY webhook.created_at, webhook.id`

/** Every webhook of the organisation, oldest first. */
export function listOverview(db: Db, organisationId: string): Promise<OverviewRow[]> {
  return readOverview(db, OF_ORGANISATION, { organisationId })
}

/** These webhooks of any organisations, newest first. */
export function listOverviewForOperators(db: Db, ids: readonly string[]): Promise<OverviewRow[]> {
  return readOverview(
    db,
    'webhook.id = ANY(:ids::uuid[]) AND webhook.deleted_at IS NULL ORDER BY webhook.id DESC',
    { ids },
  )
}

/** How a webhook's deliveries stand (spec 4.3), with the payload of its latest attempt; null where that is erased. */
export type WebhookStatsRow = WaitingFirstAttempts &
  Pick<OverviewRow, 'waitingForRetry' | 'permanentlyFailed' | 'stopped'> & {
    webhookId: string
    latestAttempt: LatestAttemptRow | null
  }

type LatestAttemptRow = LatestAttempt & { body: Buffer | null }

/** Payloads that are in memory at once for one answer: of one webhook, or of several with so many bytes together. */
const PAYLOAD_BYTES_AT_ONCE = 1_024 * 1_024

/** Yields a row for each webhook of the organisation, some at a time, oldest webhook first; test events count nowhere. */
export async function* deliveryStats(
  db: Db,
  organisationId: string,
): AsyncGenerator<WebhookStatsRow[], void> {
  // Recent attempts are not shown, and their rows would cost more to read than all the rest.
  const overview = await readOverview(db, OF_ORGANISATION, { organisationId }, `'infinity'`)
  const sizes = await ofLatest<number | null>(db, organisationId, overview, 'octet_length(event.body)')
  const batches: OverviewRow[][] = []
  let bytes = 0
  for (const row of overview) {
    const size = sizes.get(row.latestAttempt?.deliveryId ?? '') ?? 0
    const batch = batches.at(-1)
    const fits = batch !== undefined && bytes + size <= PAYLOAD_BYTES_AT_ONCE
    if (fits) batch.push(row)
    else batches.push([row])
    bytes = fits ? bytes + size : size
  }
  for (const rows of batches) {
    const bodies = await ofLatest<Buffer | null>(db, organisationId, rows, 'event.body')
    yield rows.map(({ id, latestAttempt, ...row }) => ({
      webhookId: id,
      waitingForFirstAttempt: row.waitingForFirstAttempt,
      oldestWaitingForFirstAttemptMs: row.oldestWaitingForFirstAttemptMs,
      waitingForRetry: row.waitingForRetry,
      permanentlyFailed: row.permanentlyFailed,
      stopped: row.stopped,
      latestAttempt: latestAttempt && {
        ...latestAttempt,
        body: bodies.get(latestAttempt.deliveryId) ?? null,
      },
    }))
  }
}

/** Returns, by the delivery of each latest attempt, the value of an expression of its event. */
async function ofLatest<Value>(
  db: Db,
  organisationId: string,
  rows: readonly OverviewRow[],
  expression: 'event.body' | 'octet_length(event.body)',
): Promise<Map<string, Value>> {
  const found = await sql(
    `SELECT delivery.id, ${expression} AS value FROM delivery JOIN event ON event.id = delivery.event_id
      WHERE delivery.organisation_id = :organisationId AND delivery.id = ANY(:ids::uuid[])`,
    { organisationId, ids: rows.flatMap(({ latestAttempt }) => latestAttempt?.deliveryId ?? []) },
  ).rows<{ id: string; value: Value }>(db)
  return new Map(found.map(({ id, value }) => [id, value]))
}

/** What the status of these webhooks of any organisations follows from, without the rest. */
export async function listStatusInputsForOperators(
  db: Db,
  ids: readonly string[],
): Promise<(StatusInputs & { id: string })[]> {
  const found = await sql(
    `SELECT webhook.id, webhook.enabled, incident.id IS NOT NULL AS "hasOpenIncident",
            latest.outcome AS "latestOutcome", since_opened.attempts, since_opened.succeeded
       FROM unnest(:ids::uuid[]) AS wanted (id)
       JOIN webhook ON webhook.id = wanted.id AND webhook.deleted_at IS NULL
       LEFT JOIN incident ON incident.webhook_id = webhook.id AND incident.closed_at IS NULL
       LEFT JOIN LATERAL ${LATEST_ATTEMPT} latest ON true
      CROSS JOIN LATERAL (
         SELECT count(*)::int AS attempts, count(*) FILTER (WHERE outcome = 'succeeded')::int AS succeeded
           FROM ${recentSince(`CASE WHEN incident.id IS NULL THEN 'infinity' ELSE ${SINCE_OPENED} END`)} recent
       ) since_opened`,
    { ids },
  ).rows<Omit<StatusInputs, 'sinceOpened'> & StatusInputs['sinceOpened'] & { id: string }>(db)
  return found.map(({ attempts, succeeded, ...inputs }) => ({
    ...inputs,
    sinceOpened: { attempts, succeeded },
  }))
}

/**
 * Each part is read from an index made for it. `which`: the condition and the order; `since`: SQL for when attempts begin
 * to count as recent.
 */
async function readOverview(
  db: Db,
  which: string,
  parameters: Record<string, unknown>,
  since = `now() - interval '24 hours'`,
): Promise<OverviewRow[]> {
  const found = await sql(
    `SELECT webhook.id, webhook.url, webhook.description, webhook.subscribed_event_keys AS "subscribedEventKeys",
            webhook.enabled, webhook.held_at AS "heldAt", webhook.hold_reason AS "holdReason",
            webhook.created_at AS "createdAt", webhook.updated_at AS "updatedAt",
            (SELECT count(*)::int FROM delivery WHERE webhook_id = webhook.id AND state = 'waiting') AS "waitingForRetry",
            (SELECT count(*)::int FROM delivery WHERE webhook_id = webhook.id AND state = 'failed') AS "permanentlyFailed",
            (SELECT count(*)::int FROM delivery
              WHERE webhook_id = webhook.id AND state = 'stopped' AND NOT is_test) AS stopped,
            incident.id AS "incidentId", incident.opened_at AS "openedAt", incident.exhausted_at AS "exhaustedAt",
            waiting_first.*, latest.*, recent.*
       FROM webhook
      CROSS JOIN LATERAL ${WAITING_FIRST_ATTEMPTS} waiting_first
       LEFT JOIN incident ON incident.webhook_id = webhook.id AND incident.closed_at IS NULL
       LEFT JOIN LATERAL (
         SELECT latest.delivery_id AS "deliveryId", event.key AS "eventKey", latest.number,
                latest.started_at AS "attemptedAt", latest.outcome, latest.status_code AS "statusCode", latest.error
           FROM ${LATEST_ATTEMPT} latest
           JOIN delivery ON delivery.id = latest.delivery_id
           JOIN event ON event.id = delivery.event_id
       ) latest ON true
      CROSS JOIN LATERAL (
         SELECT count(*)::int AS attempts, count(*) FILTER (WHERE outcome = 'succeeded')::int AS succeeded,
                percentile_disc(0.95) WITHIN GROUP (ORDER BY duration_ms) AS "p95DurationMs",
                count(*) FILTER (WHERE started_at >= ${SINCE_OPENED})::int AS "attemptsSince",
                count(*) FILTER (WHERE started_at >= ${SINCE_OPENED} AND outcome = 'succeeded')::int AS "succeededSince"
           FROM ${recentSince(since)} recent
       ) recent
      WHERE ${which}`,
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

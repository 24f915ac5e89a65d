import type { AttemptOutcome } from '../../domain/attempt-outcome.ts'
import type { NotificationChannel, NotificationKind, Streak } from '../../domain/incident-rules.ts'
import { firstRow, rows, type Db } from '../db.ts'
import { queueForIncident } from './incidents.ts'

/** An incident as its workflow finds it, locked until the transaction ends. */
export type IncidentRow = {
  id: string
  organisationId: string
  webhookId: string
  openedAt: Date
  resumedAt: Date | null
  open: boolean
  exhausted: boolean
  firstNotifiedAt: Date | null
  secondNotifiedAt: Date | null
}

/** Null when it was purged. The organisation is in the key as everywhere. */
export async function lockIncident(
  db: Db,
  organisationId: string,
  incidentId: string,
): Promise<IncidentRow | null> {
  const found = await firstRow<{ webhookId: string }>(
    db,
    `SELECT webhook_id AS "webhookId" FROM incident WHERE id = $1 AND organisation_id = $2`,
    [incidentId, organisationId],
  )
  if (found === null) return null
  await queueForIncident(db, found.webhookId, 'exclusive')
  return firstRow(
    db,
    `SELECT id, organisation_id AS "organisationId", webhook_id AS "webhookId", opened_at AS "openedAt",
            resumed_at AS "resumedAt", closed_at IS NULL AS open, exhausted_at IS NOT NULL AS exhausted,
            first_notified_at AS "firstNotifiedAt", second_notified_at AS "secondNotifiedAt"
       FROM incident WHERE id = $1 AND organisation_id = $2 FOR NO KEY UPDATE`,
    [incidentId, organisationId],
  )
}

/** How the webhook of an incident stands at this moment. */
export type WebhookStanding = {
  /** Enabled and not deleted. */
  live: boolean
  waiting: number
  failed: number
  /** Failures since the last success, of this incident; null when the latest attempt succeeded. */
  streak: Streak | null
  lastFailure: Pick<Exclude<AttemptOutcome, { state: 'deferred' }>, 'failureCode' | 'statusCode'> & {
    error: string | null
  }
}

/**
 * Each part is read from an index made for it. A streak begins with the first failure after the last success, in the
 * order in which attempts began, and counts from its end; never before the incident, since failures that were resolved
 * without a success belong to an earlier one, nor before the webhook was switched on again.
 */
export async function findWebhookStanding(
  db: Db,
  incident: Pick<IncidentRow, 'webhookId' | 'openedAt' | 'resumedAt'>,
): Promise<WebhookStanding> {
  const found = await firstRow<StandingColumns>(
    db,
    `WITH success AS (
       SELECT max(started_at) AS at FROM attempt WHERE webhook_id = $1 AND outcome = 'succeeded'
     ), first_failure AS (
       SELECT greatest(a.started_at + a.duration_ms * interval '1 ms', $2::timestamptz) AS at
         FROM attempt a, success
        WHERE a.webhook_id = $1 AND a.outcome = 'failed'
          AND a.started_at > greatest(success.at, $3::timestamptz, '-infinity')
        ORDER BY a.started_at LIMIT 1
     ), last_failure AS (
       SELECT failure_code, status_code, error FROM attempt
        WHERE webhook_id = $1 AND outcome = 'failed' ORDER BY started_at DESC LIMIT 1
     )
     SELECT w.enabled AND w.deleted_at IS NULL AS live,
            (SELECT count(*)::int FROM delivery WHERE webhook_id = $1 AND state = 'waiting') AS waiting,
            (SELECT count(*)::int FROM delivery WHERE webhook_id = $1 AND state = 'failed') AS failed,
            (SELECT floor(extract(epoch FROM at) * 1000)::float8 FROM first_failure) AS "sinceMs",
            (SELECT greatest(0, extract(epoch FROM now() - at) * 1000)::float8 FROM first_failure) AS "forMs",
            (SELECT jsonb_build_object('failureCode', failure_code, 'statusCode', status_code, 'error', error)
               FROM last_failure) AS "lastFailure"
       FROM webhook w WHERE w.id = $1`,
    [incident.webhookId, incident.openedAt, incident.resumedAt],
  )
  if (found === null) throw new Error('an incident without its webhook')
  const { sinceMs, forMs, lastFailure, ...standing } = found
  return {
    ...standing,
    streak: sinceMs === null ? null : { sinceMs, forMs },
    // Purged attempts leave nothing to tell.
    lastFailure: lastFailure ?? { failureCode: null, statusCode: null, error: null },
  }
}

type StandingColumns = Omit<WebhookStanding, 'streak' | 'lastFailure'> & {
  sinceMs: number | null
  forMs: number
  lastFailure: WebhookStanding['lastFailure'] | null
}

/** The workflow comes back within a quarter of an hour while something is to be sent; this is the sweep's patience. */
const WHILE_SENDING = `interval '17 minutes'`

/** What the workflow is to be woken for besides a change: `resting` for the next failure, the sweep after that time. */
export async function noteLook(
  db: Db,
  incidentId: string,
  look: { resting: boolean; sweepAfterMs: number | null },
): Promise<void> {
  await rows(
    db,
    `UPDATE incident SET resting = $2, sweep_at = CASE
        WHEN EXISTS (SELECT 1 FROM notification WHERE incident_id = $1 AND state IN ('pending', 'sending'))
        THEN now() + ${WHILE_SENDING} ELSE now() + $3::float8 * interval '1 ms' END
      WHERE id = $1`,
    [incidentId, look.resting, look.sweepAfterMs],
  )
}

/** Addresses a notification: one row per recipient, once and for all. The caller holds the incident's lock. */
export async function addressNotification(
  db: Db,
  incidentId: string,
  kind: NotificationKind,
  recipients: readonly { channel: NotificationChannel; recipient: string }[],
): Promise<void> {
  const column = kind === 1 ? 'first_notified_at' : 'second_notified_at'
  await rows(db, `UPDATE incident SET ${column} = now() WHERE id = $1 AND ${column} IS NULL`, [incidentId])
  await rows(
    db,
    `INSERT INTO notification (id, incident_id, kind, channel, recipient)
     SELECT uuidv7(), $1, $2, channel, recipient
       FROM unnest($3::text[], $4::text[]) AS to_whom (channel, recipient)
     ON CONFLICT (incident_id, kind, channel, recipient) DO NOTHING`,
    [
      incidentId,
      kind,
      recipients.map(({ channel }) => channel),
      recipients.map(({ recipient }) => recipient),
    ],
  )
}

/** Who is to be told, as the rows say it at this moment (spec 6.4). */
export type RecipientRows = {
  organisation: { name: string; email: string; supportEmail: string | null; timeZone: string }
  members: { id: string; name: string; email: string; pushSubscriptions: string[] }[]
}

/** Members with full access or `permission`; their push subscriptions only where they have push enabled. */
export async function findRecipients(
  db: Db,
  organisationId: string,
  permission: string,
): Promise<RecipientRows> {
  const organisation = await firstRow<RecipientRows['organisation']>(
    db,
    `SELECT name, email, support_email AS "supportEmail", time_zone AS "timeZone" FROM organisation WHERE id = $1`,
    [organisationId],
  )
  if (organisation === null) throw new Error('an incident without its organisation')
  const members = await rows<RecipientRows['members'][number]>(
    db,
    `SELECT m.id, m.name, m.email,
            CASE WHEN m.push_enabled THEN ARRAY(
              SELECT p.id::text FROM push_subscription p
               WHERE p.organisation_id = m.organisation_id AND p.member_id = m.id ORDER BY p.id
            ) ELSE '{}' END AS "pushSubscriptions"
       FROM member m
      WHERE m.organisation_id = $1 AND (m.full_access OR $2 = ANY(m.permissions)) ORDER BY m.id`,
    [organisationId, permission],
  )
  return { organisation, members }
}

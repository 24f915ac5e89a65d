// Hand-written: streaks and recipients are read in one statement each, by PostgreSQL's clock; a notification is claimed
// and settled by compare-and-set over three tables.
import {
  MAX_COUNTED,
  type NotificationCounts,
  type NotificationState,
  type NotificationChannel,
  type NotificationKind,
  type Streak,
} from '../../domain/notification-rules.ts'
import { sql, type Db } from '../connection/db.ts'
import type { Notification, Incident } from '../entities/incident.ts'
import type { RowOutcome } from '../../domain/attempt-outcome.ts'
import type { Member, Organisation } from '../entities/organisation.ts'

/** An incident with what decides about its notifications. */
export type IncidentRow = Pick<
  Incident,
  'id' | 'organisationId' | 'webhookId' | 'openedAt' | 'resumedAt' | 'firstNotifiedAt' | 'secondNotifiedAt'
> & { open: boolean; exhausted: boolean }

/** Null when it was purged. The organisation is in the key as everywhere. */
export function findIncident(
  db: Db,
  organisationId: string,
  incidentId: string,
): Promise<IncidentRow | null> {
  return sql(
    `SELECT id, organisation_id AS "organisationId", webhook_id AS "webhookId", opened_at AS "openedAt",
            resumed_at AS "resumedAt", closed_at IS NULL AS open, exhausted_at IS NOT NULL AS exhausted,
            first_notified_at AS "firstNotifiedAt", second_notified_at AS "secondNotifiedAt"
       FROM incident WHERE id = :incidentId AND organisation_id = :organisationId`,
    { incidentId, organisationId },
  ).first(db)
}

/** What the evaluation of an incident goes by: its webhook at this moment. */
export type EvaluationInputs = {
  /** Enabled and not deleted. */
  live: boolean
  /** Deliveries in these states, MAX_COUNTED + 1 where there are more. */
  waiting: number
  failed: number
  /** Failures since the last success, of this incident; null when the latest attempt succeeded, or nothing is unresolved. */
  streak: Streak | null
  lastFailure: Pick<RowOutcome, 'failureCode' | 'statusCode'> & {
    error: string | null
  }
}

/**
 * Each part is read from an index made for it. A streak begins with the first failure after the last success, in the
 * order in which attempts began, and counts from its end; never before the incident, since failures that were resolved
 * without a success belong to an earlier one, nor before `resumedAt`. The last success is a value before the failures are
 * read: joined to them it would have all older ones read too.
 */
export async function findEvaluationInputs(
  db: Db,
  incident: Pick<IncidentRow, 'organisationId' | 'webhookId' | 'openedAt' | 'resumedAt'>,
): Promise<EvaluationInputs> {
  const { organisationId, webhookId, openedAt, resumedAt } = incident
  const { sinceMs, forMs, lastFailure, ...inputs } = await sql(
    `WITH first_failure AS (
       SELECT greatest(started_at + duration_ms * interval '1 ms', :openedAt::timestamptz) AS at
         FROM attempt
        WHERE webhook_id = :webhookId AND outcome = 'failed' AND has_unresolved(:webhookId::uuid)
          AND started_at > greatest((SELECT max(started_at) FROM attempt
                                      WHERE webhook_id = :webhookId AND outcome = 'succeeded'),
                                    :resumedAt::timestamptz, '-infinity')
        ORDER BY started_at LIMIT 1
     ), last_failure AS (
       SELECT failure_code, status_code, error FROM attempt
        WHERE webhook_id = :webhookId AND outcome = 'failed' ORDER BY started_at DESC LIMIT 1
     )
     SELECT enabled AND deleted_at IS NULL AS live,
            (${countOf('waiting')}) AS waiting,
            (${countOf('failed')}) AS failed,
            (SELECT floor(extract(epoch FROM at) * 1000)::float8 FROM first_failure) AS "sinceMs",
            (SELECT greatest(0, extract(epoch FROM now() - at) * 1000)::float8 FROM first_failure) AS "forMs",
            (SELECT jsonb_build_object('failureCode', failure_code, 'statusCode', status_code, 'error', error)
               FROM last_failure) AS "lastFailure"
       FROM webhook WHERE id = :webhookId AND organisation_id = :organisationId`,
    { organisationId, webhookId, openedAt, resumedAt },
  ).one<InputColumns>(db)
  return {
    ...inputs,
    streak: sinceMs === null ? null : { sinceMs, forMs },
    // Purged attempts leave no failure to report.
    lastFailure: lastFailure ?? { failureCode: null, statusCode: null, error: null },
  }
}

/** Read under the lock of the webhook, so no backlog may make it last. */
function countOf(state: 'waiting' | 'failed'): string {
  return `SELECT count(*)::int FROM (
            SELECT FROM delivery WHERE webhook_id = :webhookId AND state = '${state}' LIMIT ${MAX_COUNTED + 1}) counted`
}

type InputColumns = Omit<EvaluationInputs, 'streak' | 'lastFailure'> & {
  sinceMs: number | null
  forMs: number
  lastFailure: EvaluationInputs['lastFailure'] | null
}

/** While something is to be sent, the workflow evaluates within a quarter of an hour; then the sweeper signals it. */
const WHILE_SENDING = `interval '17 minutes'`

/**
 * Notes what the workflow is to be woken for besides a change: `resting` for the next failure; the sweeper's time. Where
 * nothing is unresolved though nothing succeeded, as after a subscription was narrowed, later failures are a new streak.
 */
export async function recordEvaluation(
  db: Db,
  incidentId: string,
  next: { resting: boolean; sweepAfterMs: number | null },
): Promise<void> {
  await sql(
    `UPDATE incident SET resting = :resting,
        resumed_at = CASE WHEN has_unresolved(webhook_id) THEN resumed_at ELSE greatest(resumed_at,
          (SELECT max(started_at) FROM attempt WHERE webhook_id = incident.webhook_id AND outcome = 'failed')) END,
        sweep_at = CASE
        WHEN EXISTS (SELECT 1 FROM notification WHERE incident_id = :incidentId AND state IN ('pending', 'sending'))
        THEN now() + ${WHILE_SENDING} ELSE now() + :sweepAfterMs::float8 * interval '1 ms' END
      WHERE id = :incidentId`,
    { incidentId, resting: next.resting, sweepAfterMs: next.sweepAfterMs },
  ).rows(db)
}

/** Addresses a notification: one row per recipient, once and for all. The caller holds the lock of the webhook. */
export async function addressNotification(
  db: Db,
  incidentId: string,
  kind: NotificationKind,
  recipients: readonly { channel: NotificationChannel; recipient: string }[],
): Promise<void> {
  const column = kind === 1 ? 'first_notified_at' : 'second_notified_at'
  await sql(`UPDATE incident SET ${column} = now() WHERE id = :incidentId AND ${column} IS NULL`, {
    incidentId,
  }).rows(db)
  await sql(
    `INSERT INTO notification (id, incident_id, kind, channel, recipient)
     SELECT uuidv7(), :incidentId, :kind, channel, recipient
       FROM unnest(:channels::text[], :recipients::text[]) AS to_whom (channel, recipient)
     ON CONFLICT (incident_id, kind, channel, recipient) DO NOTHING`,
    {
      incidentId,
      kind,
      channels: recipients.map(({ channel }) => channel),
      recipients: recipients.map(({ recipient }) => recipient),
    },
  ).rows(db)
}

/** Who is to be notified at this moment (spec 6.4). */
export type RecipientRows = {
  organisation: Omit<Organisation, 'id'>
  members: (Pick<Member, 'id' | 'name' | 'email'> & { pushSubscriptions: string[] })[]
}

/** Members with full access or `permission`; their push subscriptions only where they have push enabled. */
export async function findRecipients(
  db: Db,
  organisationId: string,
  permission: string,
): Promise<RecipientRows> {
  const organisation = await sql(
    `SELECT name, email, support_email AS "supportEmail", time_zone AS "timeZone" FROM organisation WHERE id = :organisationId`,
    { organisationId },
  ).one<RecipientRows['organisation']>(db)
  const members = await sql(
    `SELECT id, name, email,
            CASE WHEN push_enabled THEN ARRAY(
              SELECT id::text FROM push_subscription
               WHERE organisation_id = :organisationId AND member_id = member.id ORDER BY push_subscription.id
            ) ELSE '{}' END AS "pushSubscriptions"
       FROM member
      WHERE organisation_id = :organisationId AND (full_access OR :permission = ANY(permissions)) ORDER BY id`,
    { organisationId, permission },
  ).rows<RecipientRows['members'][number]>(db)
  return { organisation, members }
}

export type PendingNotification = Pick<Notification, 'id' | 'kind' | 'channel' | 'recipient'>

/** One that came to its end without a try of its own. */
export type SettledNotification = Pick<Notification, 'kind' | 'channel'> & { state: 'failed' | 'unknown' }

/** After that time a try is over, whatever became of it: with the longest time-outs it takes ten minutes. */
export const TRY_LOST_AFTER = `interval '11 minutes'`

/** For as long what was refused is tried again. */
export const TRIED_FOR = `interval '24 hours'`

/** No notification of this incident may go out any more: it is over, or its webhook is. */
const OVER = `(incident.closed_at IS NOT NULL OR webhook.deleted_at IS NOT NULL)`

/**
 * Ends what will not be sent: pending notifications of an incident that is over, or that could not be sent for a day,
 * and tries that died in the middle, of which it is unknown whether they were accepted. Returns those that were still
 * wanted: not sent for a day, or unknown.
 */
export async function settleNotifications(db: Db, incidentId: string): Promise<SettledNotification[]> {
  const ended = await sql(
    `UPDATE notification
        SET state = 'failed', error = CASE WHEN ${OVER} THEN 'over before it could be sent'
                                           ELSE coalesce(error, 'not accepted') || '; given up' END
       FROM incident JOIN webhook ON webhook.id = incident.webhook_id
      WHERE incident.id = :incidentId AND notification.incident_id = incident.id AND notification.state = 'pending'
        AND (${OVER} OR notification.created_at < now() - ${TRIED_FOR})
      RETURNING notification.kind, notification.channel, notification.state, ${OVER} AS over`,
    { incidentId },
  ).rows<SettledNotification & { over: boolean }>(db)
  const lost = await sql(
    `UPDATE notification SET state = 'unknown', error = 'the process that sent it was lost'
      WHERE incident_id = :incidentId AND state = 'sending' AND claimed_at < now() - ${TRY_LOST_AFTER}
      RETURNING kind, channel, state`,
    { incidentId },
  ).rows<SettledNotification>(db)
  return [...ended.filter(({ over }) => !over), ...lost]
}

/** Returns pending notifications, with `retry` also refused ones; none while the webhook is disabled. */
export async function findPending(
  db: Db,
  incidentId: string,
  retry: boolean,
): Promise<PendingNotification[]> {
  return sql(
    `SELECT notification.id, kind, channel, recipient
       FROM notification
       JOIN incident ON incident.id = notification.incident_id
       JOIN webhook ON webhook.id = incident.webhook_id
      WHERE incident_id = :incidentId AND state = 'pending' AND (:retry OR claimed_at IS NULL) AND webhook.enabled
      ORDER BY kind, channel, recipient`,
    { incidentId, retry },
  ).rows(db)
}

/**
 * Claims a notification for one try, by compare-and-set, before anything is sent. Returns false when another try has
 * claimed it, it is settled, the webhook is disabled, or the incident is over. Returns true again for the same `claim`,
 * so that it can be repeated after a lost connection.
 */
export async function claimNotification(db: Db, id: string, claim: string): Promise<boolean> {
  const claimed = await sql(
    `UPDATE notification SET state = 'sending', claim = :claim, claimed_at = now()
       FROM incident JOIN webhook ON webhook.id = incident.webhook_id
      WHERE notification.id = :id AND (state = 'pending' OR state = 'sending' AND claim = :claim)
        AND incident.id = notification.incident_id AND webhook.enabled AND NOT ${OVER}
     RETURNING notification.id`,
    { id, claim },
  ).first(db)
  return claimed !== null
}

/** Records how the try ended; also of one that was taken for lost meanwhile, unless another try claimed the row. */
export async function recordNotification(
  db: Db,
  id: string,
  claim: string,
  ended: { state: Exclude<NotificationState, 'sending'>; error: string | null },
): Promise<void> {
  await sql(
    `UPDATE notification SET state = :state, error = :error, sent_at = CASE WHEN :state = 'sent' THEN now() END
      WHERE id = :id AND claim = :claim AND (state = 'sending' OR state = 'unknown' AND :state <> 'pending')`,
    { id, claim, state: ended.state, error: ended.error },
  ).rows(db)
}

/** How many notifications of each kind are in each state. */
export async function countNotifications(db: Db, incidentId: string): Promise<NotificationCounts> {
  return sql(
    `SELECT kind, state, count(*)::int AS count FROM notification WHERE incident_id = :incidentId 
      GROUP BY kind, state ORDER BY kind, state`,
    { incidentId },
  ).rows(db)
}

// Hand-written: a notification is claimed and settled by compare-and-set over three tables.
import type { NotificationCounts, NotificationState } from '../../domain/notification-rules.ts'
import { sql, type Db } from '../connection/db.ts'
import type { Notification } from '../entities/incident.ts'

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

import type {
  NotificationChannel,
  NotificationCounts,
  NotificationKind,
  NotificationState,
} from '../../domain/incident-rules.ts'
import { firstRow, rows, type Db } from '../db.ts'

export type PendingNotification = {
  id: string
  kind: NotificationKind
  channel: NotificationChannel
  recipient: string
}

/** One that came to its end without a try of its own. */
export type SettledNotification = {
  kind: NotificationKind
  channel: NotificationChannel
  state: 'failed' | 'unknown'
}

/** After that time a try is over, whatever became of it: with the longest time-outs it takes ten minutes. */
const TRY_LOST_AFTER = `interval '11 minutes'`

/** For as long what was refused is tried again. */
const TRIED_FOR = `interval '24 hours'`

/** No notification of this incident may go out any more: it is over, or its webhook is. */
const OVER = `(i.closed_at IS NOT NULL OR w.deleted_at IS NOT NULL)`

/**
 * Ends what will not be sent: pending notifications of an incident that is over, or that could not be sent for a day,
 * and tries that died in the middle, of which nobody knows whether they were accepted. Returns those that somebody still
 * wanted: not sent for a day, or unknown.
 */
export async function settleNotifications(db: Db, incidentId: string): Promise<SettledNotification[]> {
  const ended = await rows<SettledNotification & { over: boolean }>(
    db,
    `UPDATE notification n
        SET state = 'failed', error = CASE WHEN ${OVER} THEN 'over before it could be sent'
                                           ELSE coalesce(n.error, 'not accepted') || '; given up' END
       FROM incident i JOIN webhook w ON w.id = i.webhook_id
      WHERE i.id = $1 AND n.incident_id = i.id AND n.state = 'pending'
        AND (${OVER} OR n.created_at < now() - ${TRIED_FOR})
      RETURNING n.kind, n.channel, n.state, ${OVER} AS over`,
    [incidentId],
  )
  const lost = await rows<SettledNotification>(
    db,
    `UPDATE notification SET state = 'unknown', error = 'the process that sent it was lost'
      WHERE incident_id = $1 AND state = 'sending' AND claimed_at < now() - ${TRY_LOST_AFTER}
      RETURNING kind, channel, state`,
    [incidentId],
  )
  return [...ended.filter(({ over }) => !over), ...lost]
}

/** With `retry` also what was tried before and refused. Nothing while the webhook is disabled: it is held. */
export async function findPending(
  db: Db,
  incidentId: string,
  retry: boolean,
): Promise<PendingNotification[]> {
  return rows(
    db,
    `SELECT n.id, n.kind, n.channel, n.recipient
       FROM notification n JOIN incident i ON i.id = n.incident_id JOIN webhook w ON w.id = i.webhook_id
      WHERE n.incident_id = $1 AND n.state = 'pending' AND ($2 OR n.claimed_at IS NULL) AND w.enabled
      ORDER BY n.kind, n.channel, n.recipient`,
    [incidentId, retry],
  )
}

/**
 * Claims a notification for one try, by compare-and-set, before anything leaves the house. False when another try has
 * it, it was settled, the webhook is disabled, or the incident is over. The same claim asked for again, because the answer was
 * lost with the connection, is still held.
 */
export async function claimNotification(db: Db, id: string, claim: string): Promise<boolean> {
  const claimed = await firstRow(
    db,
    `UPDATE notification n SET state = 'sending', claim = $2, claimed_at = now()
       FROM incident i JOIN webhook w ON w.id = i.webhook_id
      WHERE n.id = $1 AND (n.state = 'pending' OR n.state = 'sending' AND n.claim = $2) AND i.id = n.incident_id
        AND w.enabled AND NOT ${OVER} RETURNING n.id`,
    [id, claim],
  )
  return claimed !== null
}

/**
 * Writes how the try ended; one that was called lost meanwhile may still speak, as long as nobody else took the row.
 */
export async function recordNotification(
  db: Db,
  id: string,
  claim: string,
  ended: { state: Exclude<NotificationState, 'sending'>; error: string | null },
): Promise<void> {
  await rows(
    db,
    `UPDATE notification SET state = $3, error = $4, sent_at = CASE WHEN $3 = 'sent' THEN now() END
      WHERE id = $1 AND claim = $2 AND (state = 'sending' OR state = 'unknown' AND $3 <> 'pending')`,
    [id, claim, ended.state, ended.error],
  )
}

/** How many notifications of each kind are in each state. */
export async function countNotifications(db: Db, incidentId: string): Promise<NotificationCounts> {
  return rows(
    db,
    `SELECT kind, state, count(*)::int AS count FROM notification WHERE incident_id = $1 
      GROUP BY kind, state ORDER BY kind, state`,
    [incidentId],
  )
}

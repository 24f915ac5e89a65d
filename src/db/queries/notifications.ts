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

/** After that time a try is over, whatever became of it: with the default time-outs it takes five minutes at most. */
const TRY_LOST_AFTER = `interval '6 minutes'`

/** No notification of this incident may go out any more: it is over, or its webhook is. */
const OVER = `(i.closed_at IS NOT NULL OR NOT w.enabled OR w.deleted_at IS NOT NULL)`

/**
 * Ends what will not be sent: pending notifications of an incident that is over (or, with `giveUp`, all of them), and
 * tries that died in the middle, of which nobody knows whether they were accepted. Returns how many of those there are.
 */
export async function settleNotifications(db: Db, incidentId: string, giveUp: boolean): Promise<number> {
  await rows(
    db,
    `UPDATE notification n
        SET state = 'failed', error = CASE WHEN ${OVER} THEN 'over before it could be sent'
                                           ELSE coalesce(n.error, 'not accepted') || '; given up' END
       FROM incident i JOIN webhook w ON w.id = i.webhook_id
      WHERE i.id = $1 AND n.incident_id = i.id AND n.state = 'pending' AND ($2 OR ${OVER})`,
    [incidentId, giveUp],
  )
  const lost = await rows(
    db,
    `UPDATE notification SET state = 'unknown', error = 'the process that sent it was lost'
      WHERE incident_id = $1 AND state = 'sending' AND claimed_at < now() - ${TRY_LOST_AFTER} RETURNING id`,
    [incidentId],
  )
  return lost.length
}

export async function findPending(db: Db, incidentId: string): Promise<PendingNotification[]> {
  return rows(
    db,
    `SELECT id, kind, channel, recipient FROM notification
      WHERE incident_id = $1 AND state = 'pending' ORDER BY kind, channel, recipient`,
    [incidentId],
  )
}

/**
 * Claims a notification for one try, by compare-and-set, before anything leaves the house. False when another try has
 * it, it was settled, or the incident or its webhook is over.
 */
export async function claimNotification(db: Db, id: string, claim: string): Promise<boolean> {
  const claimed = await firstRow(
    db,
    `UPDATE notification n SET state = 'sending', claim = $2, claimed_at = now()
       FROM incident i JOIN webhook w ON w.id = i.webhook_id
      WHERE n.id = $1 AND n.state = 'pending' AND i.id = n.incident_id AND NOT ${OVER} RETURNING n.id`,
    [id, claim],
  )
  return claimed !== null
}

/** Writes how the try ended; one that was called lost meanwhile may still speak, as long as nobody else took the row. */
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

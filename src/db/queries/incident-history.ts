import type { NotificationChannel, NotificationKind, NotificationState } from '../../domain/incident-rules.ts'
import { rows, type Db } from '../db.ts'

/** A notification as the API shows it. `recipient`: an e-mail address, or the id of a push subscription. */
export type NotificationRow = {
  kind: NotificationKind
  channel: NotificationChannel
  recipient: string
  state: NotificationState
  sentAt: Date | null
}

/** An incident as the API shows it. */
export type IncidentRow = {
  id: string
  openedAt: Date
  closedAt: Date | null
  exhaustedAt: Date | null
  notifications: NotificationRow[]
}

/**
 * A webhook's latest `limit` incidents, newest first, each with its notifications in the order of kind, channel and
 * recipient; recipients by their bytes, so that the order is the same under every collation.
 */
export async function listIncidents(
  db: Db,
  organisationId: string,
  webhookId: string,
  limit: number,
): Promise<IncidentRow[]> {
  const found = await rows<IncidentAsJson>(
    db,
    `SELECT i.id, i.opened_at AS "openedAt", i.closed_at AS "closedAt", i.exhausted_at AS "exhaustedAt",
            coalesce(n.notifications, '[]') AS notifications
       FROM (SELECT * FROM incident WHERE organisation_id = $1 AND webhook_id = $2
              ORDER BY opened_at DESC, id DESC LIMIT $3) i
       LEFT JOIN LATERAL (
         SELECT json_agg(json_build_object('kind', kind, 'channel', channel, 'recipient', recipient,
                                           'state', state, 'sentAt', sent_at)
                         ORDER BY kind, channel, recipient COLLATE "C") AS notifications
           FROM notification WHERE incident_id = i.id
       ) n ON true
      ORDER BY i.opened_at DESC, i.id DESC`,
    [organisationId, webhookId, limit],
  )
  return found.map(({ notifications, ...incident }) => ({
    ...incident,
    notifications: notifications.map((notification) => ({
      ...notification,
      sentAt: notification.sentAt === null ? null : new Date(notification.sentAt),
    })),
  }))
}

/** Inside JSON a time is text: ISO 8601 with an offset. */
type IncidentAsJson = Omit<IncidentRow, 'notifications'> & {
  notifications: (Omit<NotificationRow, 'sentAt'> & { sentAt: string | null })[]
}

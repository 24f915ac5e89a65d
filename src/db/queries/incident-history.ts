import { In } from 'typeorm'
import type { Db } from '../connection/db.ts'
import { Incident } from '../entities/incident.ts'
import { Notification } from '../entities/notification.ts'

/** A notification as the API shows it. `recipient`: an e-mail address, or the id of a push subscription. */
export type NotificationRow = Pick<Notification, 'kind' | 'channel' | 'recipient' | 'state' | 'sentAt'>

/** An incident as the API shows it. */
export type IncidentRow = Pick<Incident, 'id' | 'openedAt' | 'closedAt' | 'exhaustedAt'> & {
  notifications: NotificationRow[]
}

/**
 * Returns a webhook's latest `limit` incidents, newest first, each with its notifications in the order of kind, channel
 * and recipient; recipients by their bytes, so that the order is the same under every collation.
 */
export async function listIncidents(
  db: Db,
  organisationId: string,
  webhookId: string,
  limit: number,
): Promise<IncidentRow[]> {
  const incidents = await db.getRepository(Incident).find({
    select: { id: true, openedAt: true, closedAt: true, exhaustedAt: true },
    where: { organisationId, webhookId },
    order: { openedAt: 'DESC', id: 'DESC' },
    take: limit,
  })
  const notifications = await db.getRepository(Notification).find({
    select: {
      id: true,
      incidentId: true,
      kind: true,
      channel: true,
      recipient: true,
      state: true,
      sentAt: true,
    },
    where: { incidentId: In(incidents.map(({ id }) => id)) },
  })
  return incidents.map(({ id, openedAt, closedAt, exhaustedAt }) => ({
    id,
    openedAt,
    closedAt,
    exhaustedAt,
    notifications: notifications
      .filter(({ incidentId }) => incidentId === id)
      .sort(byKindChannelAndRecipient)
      .map(({ kind, channel, recipient, state, sentAt }) => ({ kind, channel, recipient, state, sentAt })),
  }))
}

function byKindChannelAndRecipient(one: Notification, other: Notification): number {
  return (
    one.kind - other.kind ||
    Buffer.compare(Buffer.from(one.channel), Buffer.from(other.channel)) ||
    Buffer.compare(Buffer.from(one.recipient), Buffer.from(other.recipient))
  )
}
